"""Texts that tokenizers are compared on: hand-picked edges, seeded random Unicode, lines of public-domain books."""

import os
import random
import unicodedata

EDGES = [
    "a", " ", "  ", "\n", "\n\n", "\r\n", "\t", " a", "a ", " a ", "  a", "a  b", "a   b    c", "\ta\t\tb", " \n ",
    "x\n y\n  z\n", "a\r\nb\r\n\r\nc\r", "end\n\n\n\n", "\n \n  \n", "tab\tand space \t mix", "    indented four",
    "\u00bd", "\u00bd cup", "2\u00bd", "1\u2153\u00be", "\u2167 \u2175", "\u00b2\u00b3\u00b9", "\u2460\u2461",
    "1", "12", "123", "1234", "12345678901234567890", "3.14159", "1,234,567.89", "0x7fff", "1e-05", "+49 30 123456",
    "2024-02-29T23:59:60Z", "a1b22c333d4444", "   7", "x  7", "7  x", "\u0661\u0662\u0663\u0664", "\u096a\u0968",
    "it's I'm we've you'd they'll we're don't", "IT'S I'M WE'VE YOU'D THEY'LL WE'RE DON'T", "'s", "''s", " 's", "'S'T",
    "it\u2019s", "'tis", "rock 'n' roll", "o'clock", "'", "''", "'''", "\"quoted\"", "\u201cquoted\u201d",
    "Caf\u00e9", "Cafe\u0301", "\u00c5ngstr\u00f6m", "A\u030angstro\u0308m", "na\u00efve fa\u00e7ade", "\ufb01ne \ufb02ow",
    "e\u0301\u0302\u0303\u0304", "\u0301", "\u0301a", "Z\u0335\u0321\u033fa\u0334l\u0336g\u0337o\u0338",
    "\U0001F469\u200d\U0001F4BB", "\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466", "\U0001F44D\U0001F3FD",
    "\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7", "\u2764\ufe0f", "1\ufe0f\u20e3", "\U0001F600\U0001F600 \U0001F600",
    "ok\U0001F44Cok", "\u65e5\u672c\u8a9e", "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u4e2d\u6587 and English \u6df7\u5408",
    "\u304b\u305f\u304b\u306a\u3068\u30ab\u30bf\u30ab\u30ca", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5", "\u3000\u5168\u89d2\u3000",
    "\u0627\u0644\u0644\u063a\u0629 \u0627\u0644\u0639\u0631\u0628\u064a\u0629", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", "\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8",
    "\u00a0", "a\u00a0b", "\u2003wide\u2003", "a\u200bb", "a\u2028b\u2029c", "\ufeffBOM", "\u0085", "a\u0085b", "\u1680\u202f\u205f",
    "\x00", "a\x00b", "th\x04e", "\x04", "o\x1d\x13ther \x16", "!\x04!", "-\x1d-\x04-", "\x01\x02\x1b[0m", "\x1c\x1d\x1e\x1f", "\x7f", "\u00ad", "\ue000", "\ufffd", "\U000e0041", "\U0010fffd",
    "\u2581", "\u2581a", "a\u2581b", "\u2581\u2581\u2581", "\u0120", "\u0120a", "\u010a", "<0x0A>", "<0xFF>", "\\n \\t \\u0041",
    "!", "!!!", "?!", "...", "--", "---", "a-b", "a--b", "#hash @at $dollar %", "(a)[b]{c}<d>", "http://example.org/a?b=c&d=%20#e",
    "user@example.org", "C:\\dir\\file.txt", "/usr/lib/x.so.1", "snake_case camelCase PascalCase kebab-case", "__init__", "a_b__c",
    "for (int i = 0; i < n; ++i) { sum += x[i] * y[i]; }", "def f(x):\n    return x ** 2  # square\n", "if(a&&b||!c){}",
    "\tif x:\n\t\treturn\n\telse:\n\t\tpass\n", "SELECT * FROM t WHERE a>='1' -- end", "#include <vector>\r\n\r\nint main() {}\r\n",
    "{\"a\": [1, 2.5, null], \"b\": {\"c\": \"d\\n\"}}", "<html><body class=\"x\">text</body></html>", "<table><tr><td>1</td></tr></table>",
    "x = a@b; y = ~x; z = x<<3 ^ y>>1", "\u2211\u221e\u222b\u2202x \u2248 \u00b1\u2264\u2260", "\u20ac100 \u00a35 \u00a510", "\u00a9\u00ae\u2122",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ababababababababababababab", "................................",
    "================================================", "- - - - - - - -", "the the the the", "THE QUICK BROWN FOX", "tHe QuIcK",
    "supercalifragilisticexpialidocious", "pneumonoultramicroscopicsilicovolcanoconiosis", "Donaudampfschifffahrtsgesellschaft",
    "\u00df\u1e9e", "\u0130\u0131Ii", "\u01c5\u01c8", "\u02b0\u02b1", "\u00aa\u00ba", "\U0001d400\U0001d401", "\U00020000\U0002a6d6",
    "\U00010330\U00010331", "\U0001d7ce\U0001d7cf", "\u3007\u3021", "\ua98f", "\u19da", "x\u0300\u0301 y",
] + [" " * n + "x" for n in (3, 4, 7, 8, 15, 16, 17, 30, 31, 32, 33, 47, 62, 63, 100)] \
  + ["\n" * n + "x" for n in (3, 5, 30, 31, 32, 33, 62, 63)] + ["x" + "\t" * n for n in (1, 2, 3, 30, 31, 32, 33, 64)]

SPECIAL_TEXTS = {
    "gpt2": [
        "<|im_start|>", "<|im_start|>user\nhi<|im_end|>\n", "a<|im_end|>b", " <|endoftext|> ", "<|im_start|><|im_end|>",
        "<|im_start", "<|im_end|", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nIs"
        " 2 + 2 = 4?<|im_end|>\n<|im_start|>assistant\n", "<repo_name>x<file_sep>y", "<|IM_START|>", "<| im_start |>",
        "<|im_<|im_start|>start|>", "1<|im_end|>2", "caf\u00e9<|im_end|>\u00bd", "<jupyter_code>print(1)<jupyter_output>1<empty_output>",
    ],
    "llama": [
        "<start_of_turn>", "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n", "a<end_of_turn>b", " <eos> ", "<bos>",
        "<bos><bos>", "<start_of_turn", "end_of_turn>", "<pad><unk><mask>", "<unused0><unused6241>", "<start_of_image><end_of_image>",
        "[multimodal]", "<table><start_of_turn></table>", "<Start_Of_Turn>", "< start_of_turn >", "<start_<start_of_turn>of_turn>",
        "\n\n<end_of_turn>\n\n", "  <end_of_turn>  ", "1<eos>2", "caf\u00e9<end_of_turn>\u00bd",
    ],
}


def random_texts(seed, count):
    """Code points that Python's Unicode tables know: later versions assign new ones and change their class."""
    rng = random.Random(seed)
    ranges = [(0x20, 0x7f), (0x20, 0x7f), (0xa0, 0x250), (0x250, 0x600), (0x600, 0x1000), (0x1e00, 0x2c00), (0x3000, 0xa000),
              (0xac00, 0xd7a4), (0x1f300, 0x1fa00), (0x10000, 0x12000), (0x09, 0x0e), (0x20, 0x21), (0x30, 0x3a)]
    texts = []
    while len(texts) < count:
        chars = []
        for _ in range(rng.randrange(1, 24)):
            low, high = rng.choice(ranges)
            char = chr(rng.randrange(low, high))
            if unicodedata.category(char) != "Cn":
                chars.append(char)
        if chars:
            texts.append("".join(chars))
    return texts


def book_lines(directory, names, per_book, seed):
    """Seeded choice of non-empty lines, and every tenth one joined with the two lines after it."""
    rng = random.Random(seed)
    texts = []
    for name in names:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            lines = file.read().split("\n")
        chosen = [i for i in range(len(lines) - 2) if lines[i]]
        for rank, i in enumerate(sorted(rng.sample(chosen, min(per_book, len(chosen))))):
            texts.append("\n".join(lines[i:i + 3]) if rank % 10 == 0 else lines[i])
    return texts


def code_lines(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in file.read().split("\n") if line]
