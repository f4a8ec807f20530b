"""Syllables and hanzi of a few sentences with homophones: enough to train a tiny converter."""

PAIRS = [
    (("yin1", "yue4", "hen3", "hao3", "ting1"), "音乐很好听"),
    (("ta1", "hen3", "kuai4", "le4"), "他很快乐"),
    (("wo3", "men5", "qu4", "ting1", "yin1", "yue4"), "我们去听音乐"),
    (("ta1", "de5", "yin1", "yue4", "hen3", "hao3"), "她的音乐很好"),
    (("ta1", "men5", "qu4", "yin2", "hang2"), "他们去银行"),
]
