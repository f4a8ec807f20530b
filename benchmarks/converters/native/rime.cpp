// Rime: rime STATE_FOLDER SHARED_DATA SCHEMA OPTION; the option selects simplified hanzi.
#include <rime/common.h>
#include <rime/context.h>
#include <rime/service.h>
#include <rime_api.h>

#include "lines.h"

int main(int, char **values) {
    RimeApi *rime = rime_get_api();
    RIME_STRUCT(RimeTraits, traits);
    traits.user_data_dir = values[1];
    traits.shared_data_dir = values[2];
    traits.distribution_name = traits.distribution_code_name = "benchmark";
    traits.distribution_version = "1";
    traits.app_name = "rime.benchmark";
    traits.min_log_level = 3;
    traits.log_dir = values[1];
    rime->setup(&traits);
    rime->initialize(&traits);
    if (rime->start_maintenance(False)) rime->join_maintenance_thread();
    RimeSessionId session = rime->create_session();
    if (!rime->select_schema(session, values[3])) return 1;
    rime->set_option(session, values[4], True);
    // All keys at once: otherwise all candidates would be looked up again after each key.
    rime::Context *context = rime::Service::instance().GetSession(session)->context();
    answer_lines([&](const Syllables &syllables) {
        context->set_input(joined(syllables, '\''));
        // The text that the space bar would commit, without committing it: nothing is learned.
        std::string result;
        for (char byte : context->GetCommitText())
            if (byte & 0x80) result += byte;  // letters that it cannot convert are omitted
        context->Clear();
        return result;
    });
    rime->destroy_session(session);
    rime->finalize();
}
