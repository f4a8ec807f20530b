// Names of texts in; texts in the language of the page out: English or Chinese.

const TEXTS = {
  en: {
    otherLanguage: "中文", skip: "Skip to the transcript", dark: "Dark colours", title: "Speak Mandarin",
    lead: "Each syllable appears as pinyin while you speak. The characters follow.",
    controls: "Recording", start: "Start listening", stop: "Stop listening", choose: "Open a recording",
    idle: "Ready", connecting: "Connecting …", listening: "Listening", reading: "Reading the recording …", finishing: "Finishing …", disconnected: "Not connected",
    close: "Close", spectrogram: "Spectrogram", spectrogramLabel: "Spectrogram with syllables; scrolls sideways", transcript: "Transcript",
    copy: "Copy", copied: "Copied", clear: "Clear", empty: "Press the microphone button and speak, or drop a recording here.",
    private: "The audio is sent to this server only.",
    confidence: "Confidence:", sure: "sure", unsure: "less sure", doubtful: "doubtful", chosen: "chosen by you",
    refused: "Not one of the phrases", sentenceAt: "Sentence at {0}", alternatives: "Other characters", hypotheses: "Alternative transcripts",
    noAlternatives: "No other character is likely here.", from: "{0}, {1} to {2} s", listen: "Play",
    hints: "Words and phrases", words: "Preferred words", wordsNote: "One per line, such as names and terms.",
    phrases: "Only these phrases", phrasesNote: "One per line; everything else is rejected. Both settings apply from the next recording on.",
    reference: "Compare with a text", referenceLabel: "What was said, in hanzi or pinyin", compare: "Show the errors",
    errors: "Errors", report: "Open the full report", aboveBelow: "Errors: the reference above, the recognised text below.",
    noErrors: "Everything was recognised correctly.", ofTokens: "{0} of {1}", nothing: "nothing", slot: "{0}, recognised as {1}: {2}",
    rate_syllables: "Syllables", rate_toneless: "Syllables without tones", rate_hanzi: "Characters",
    export: "Save", asText: "Text", asSrt: "Subtitles", exportNote: "Subtitles as SRT; JSON with times, confidence and alternatives.",
    problem_insecure: ["The browser does not allow the microphone here.", "It allows it only over HTTPS or at http://localhost. You can still open a recording."],
    problem_denied: ["This page may not use the microphone.", "Allow it in the browser's settings for this page, then start again."],
    problem_noMicrophone: ["No microphone was found.", "Connect one, or open a recording."],
    problem_busyMicrophone: ["The microphone gives no audio.", "Another program may be using it. Close that program, then start again."],
    problem_unplugged: ["The microphone was disconnected.", "What was recognised is kept. Connect it, then start again."],
    problem_unreadable: ["The browser can't read this file.", "Audio as WAV, FLAC, MP3, M4A, OGG or WebM works in most browsers."],
    problem_longFile: ["The recording is longer than 30 minutes.", "Send it to /v1/audio/transcriptions with a POST request, or use transcribe.py."],
    problem_unreachable: ["The server can't be reached.", "Check that it is running and that you are online, then start again."],
    problem_refusedConnection: ["The server refused the connection.", "Too many people may be using it. Reload the page, or try again in a minute."],
    problem_copy: ["The browser does not allow copying.", "Pages over plain HTTP may not copy: use Save, or select the text."],
    problem_lost: ["The connection was lost.", "What was recognised is kept. Start again to go on."],
    problem_token: ["The server no longer accepts the token of this browser.", "What was recognised is kept. Open this page in a new tab, enter the token there, then start again here."],
    problem_streams: ["Too many people are using this server.", "Try again in a minute."],
    problem_idle: ["The microphone sent no audio for a while.", "What was recognised is kept. Start again to go on."],
    problem_too_long: ["The recording has reached the longest time that the server allows.", "What was recognised is kept. Start again to go on."],
    problem_too_large: ["The file is larger than the server allows.", "Compress it, for example as FLAC or Opus."],
    problem_shutdown: ["The server is being restarted.", "What was recognised is kept. Start again in a moment."],
    problem_worker_failed: ["The server could not continue this recording.", "What was recognised is kept. Start again to go on."],
    problem_nothingToSave: ["There is no transcript yet.", "Record something, or open a recording."],
    problem_noReference: ["There is no text to compare with.", "Enter what was said."],
    problem_comparison: ["The texts could not be compared.", "Check that the server is running, then try again."],
  },
  zh: {
    otherLanguage: "English", skip: "跳到识别结果", dark: "深色", title: "说普通话",
    lead: "边说边显示每个音节的拼音，汉字随后出现。",
    controls: "录音", start: "开始聆听", stop: "停止聆听", choose: "打开录音",
    idle: "就绪", connecting: "正在连接……", listening: "正在聆听", reading: "正在读取录音……", finishing: "即将完成……", disconnected: "未连接",
    close: "关闭", spectrogram: "语谱图", spectrogramLabel: "带音节的语谱图，可横向滚动", transcript: "识别结果",
    copy: "复制", copied: "已复制", clear: "清空", empty: "点按麦克风按钮后说话，或把录音拖到这里。",
    private: "声音只发送到本服务器。",
    confidence: "置信度：", sure: "确定", unsure: "不太确定", doubtful: "存疑", chosen: "由您选择",
    refused: "不在短语列表中", sentenceAt: "{0} 处的句子", alternatives: "其他汉字", hypotheses: "整句的其他结果",
    noAlternatives: "此处没有其他可能的汉字。", from: "{0}，{1} 至 {2} 秒", listen: "播放",
    hints: "词语和短语", words: "优先词语", wordsNote: "每行一个，例如人名、术语。",
    phrases: "只识别这些短语", phrasesNote: "每行一个，其余一律拒绝。这两项设置从下一次录音起生效。",
    reference: "与参考文本比较", referenceLabel: "实际所说的内容，汉字或拼音", compare: "显示错误",
    errors: "错误", report: "打开完整报告", aboveBelow: "有误之处：上为参考文本，下为识别结果。",
    noErrors: "全部识别正确。", ofTokens: "{1} 个中 {0} 个", nothing: "无", slot: "{0} 识别为 {1}：{2}",
    rate_syllables: "音节", rate_toneless: "音节（不计声调）", rate_hanzi: "汉字",
    export: "保存", asText: "文本", asSrt: "字幕", exportNote: "字幕为 SRT 格式；JSON 含时间、置信度和候选。",
    problem_insecure: ["浏览器不允许此页面使用麦克风。", "仅在 HTTPS 或本机（http://localhost）下可用；打开录音文件不受影响。"],
    problem_denied: ["未获准使用麦克风。", "请在浏览器设置中允许本页面使用麦克风，然后重新开始。"],
    problem_noMicrophone: ["没有找到麦克风。", "请连接麦克风，或打开录音。"],
    problem_busyMicrophone: ["麦克风没有声音。", "可能正被其他程序占用；请关闭后重新开始。"],
    problem_unplugged: ["麦克风已断开。", "已识别的内容仍保留。请重新连接后再开始。"],
    problem_unreadable: ["浏览器无法读取此文件。", "多数浏览器支持 WAV、FLAC、MP3、M4A、OGG 和 WebM 音频。"],
    problem_longFile: ["录音超过 30 分钟。", "请用 POST 请求发送到 /v1/audio/transcriptions，或使用 transcribe.py。"],
    problem_unreachable: ["无法连接服务器。", "请确认服务器正在运行且网络正常，然后重新开始。"],
    problem_refusedConnection: ["服务器拒绝了连接。", "目前使用者可能过多。请刷新页面，或稍后再试。"],
    problem_copy: ["浏览器不允许复制。", "通过 HTTP 打开的页面不能复制：请使用“保存”，或选中文字后复制。"],
    problem_lost: ["连接已中断。", "已识别的内容仍保留。重新开始即可继续。"],
    problem_token: ["服务器不再接受此浏览器的令牌。", "已识别的内容仍保留。请在新标签页中打开本页面并输入令牌，然后在此处重新开始。"],
    problem_streams: ["使用本服务器的人太多。", "请稍后再试。"],
    problem_idle: ["麦克风长时间没有声音。", "已识别的内容仍保留。重新开始即可继续。"],
    problem_too_long: ["录音已达到服务器允许的最大长度。", "已识别的内容仍保留。重新开始即可继续。"],
    problem_too_large: ["文件超过服务器允许的大小。", "请压缩后再试，例如用 FLAC 或 Opus。"],
    problem_shutdown: ["服务器正在重新启动。", "已识别的内容仍保留。请稍后重新开始。"],
    problem_worker_failed: ["服务器无法继续处理这段录音。", "已识别的内容仍保留。重新开始即可继续。"],
    problem_nothingToSave: ["还没有识别结果。", "请先录音，或打开录音。"],
    problem_noReference: ["没有可比较的文本。", "请输入实际所说的内容。"],
    problem_comparison: ["无法比较文本。", "请确认服务器正在运行，然后重试。"],
  },
};

// Kinds of errors (analysis/errors/kinds.py) in Chinese; the server sends the English names and explanations.
const KINDS_ZH = {
  "insertion": ["多出", "识别结果多出一个，参考文本中没有。"],
  "deletion": ["漏掉", "参考文本中有，识别结果漏掉了。"],
  "tone only": ["仅声调", "两个音节只有声调不同。"],
  "initial only": ["仅声母", "两个音节只有声母不同。"],
  "final only": ["仅韵母", "两个音节只有韵母不同。"],
  "initial and tone": ["声母和声调", "两个音节的声母和声调不同。"],
  "final and tone": ["韵母和声调", "两个音节的韵母和声调不同。"],
  "initial and final": ["声母和韵母", "两个音节的声母和韵母不同。"],
  "everything": ["完全不同", "声母、韵母、声调都不同，或其中一个不是音节。"],
  "number or Latin form": ["数字或字母", "一方不是汉字，或是同一数字的不同写法。"],
  "variant character": ["异体或通用字", "同一字的异体，或只有语法上区别的字（的、地、得）。"],
  "out-of-vocabulary hanzi": ["字表外的字", "转换器写不出参考文本中的这个字。"],
  "not in the lexicon": ["词典外的读音", "转换器不会用这个字来写这个音节。"],
  "exact homophone": ["同音字", "音节相同的另一个字。"],
  "polyphone read wrongly": ["多音字误读", "识别出的音节是参考字的另一个常用读音。"],
  "homophone but for the tone": ["仅声调不同的字", "音节只有声调不同的另一个字。"],
  "near homophone": ["近音字", "音节相近的另一个字。"],
  "other hanzi": ["其他字", "读音不同的另一个字。"],
};

let language = "en";

/** A text; `{0}`, `{1}` … are replaced by the values. */
export function text(key, ...values) {
  const found = TEXTS[language][key];
  return values.reduce((written, value, i) => written.replace(`{${i}}`, value), found);
}

/** [name, explanation] of a kind of error. */
export function kindText(name, {explanation}) {
  return language === "zh" && KINDS_ZH[name] || [name, explanation];
}

/** Whether there is a text of this name. */
export function hasText(key) {
  return key in TEXTS.en;
}

/** `en` or `zh`, whatever the browser prefers; other languages get English. */
export function preferredLanguage() {
  const first = navigator.languages.find(name => /^(en|zh)\b/.test(name));
  return first?.startsWith("zh") ? "zh" : "en";
}

/** Write all texts of the document in this language. */
export function setLanguage(chosen) {
  language = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-Hans" : "en";
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = text(element.dataset.text);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", text(element.dataset.label));
    if (element.matches("button")) element.title = text(element.dataset.label);
  }
}
