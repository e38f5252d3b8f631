#!/usr/bin/env bash
# mistral-common: how much of the prompt of a first turn the second turn of the same chat repeats.
#
# Software: mistral-common 1.13.1 (the tokenizers are in its wheel).
# A good guess: a chat grows at its end, so the second prompt starts with all tokens of the first one.
# What happens: the tokenizers of version 2 and 3 (Mistral 7B v0.3, Nemo) write the system message and the tools before the
# last user message. Both move with each turn, so the second prompt shares 1 or 2 tokens with the first. Version 7 (Mistral
# Large 2411) keeps the system message at the start and still moves the tools: with one short tool 64 of 216 tokens.
# Why it matters: a prefix cache, and a gateway that routes by prefix, save nothing for such chats, and each agent has tools.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "mistral-common[sentencepiece]==1.13.1"

cat >"$folder/measure.py" <<'PYTHON'
from os.path import commonprefix
from pathlib import Path

import mistral_common
from mistral_common.protocol.instruct.messages import AssistantMessage, SystemMessage, UserMessage
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.tool_calls import Function, Tool
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

FOLDER = Path(mistral_common.__file__).parent / "data"
TOOL = Tool(function=Function(name="weather", description="Weather of a city. " * 4, parameters={"type": "object"}))
FIRST = [SystemMessage(content="Be brief. " * 20), UserMessage(content="First question? " * 30)]
SECOND = [*FIRST, AssistantMessage(content="An answer."), UserMessage(content="And then?")]
EXPECTED = {
    "mistral_instruct_tokenizer_240323.model.v3": ("none", "none"),
    "tekken_240911.json": ("none", "none"),
    "mistral_instruct_tokenizer_241114.model.v7": ("all", "part"),
}


def prompt(tokenizer, messages, tools):
    return tokenizer.encode_chat_completion(ChatCompletionRequest(messages=messages, tools=tools)).tokens


changed = 0
for name, expected in EXPECTED.items():
    tokenizer = MistralTokenizer.from_file(str(FOLDER / name))
    for tools, wanted in zip((None, [TOOL]), expected):
        first, second = prompt(tokenizer, FIRST, tools), prompt(tokenizer, SECOND, tools)
        shared = len(commonprefix([first, second]))
        found = "all" if shared == len(first) else "none" if shared < 4 else "part"
        print(f"{name}, {'one tool' if tools else 'no tools'}: {shared} of {len(first)} tokens")
        if found != wanted:
            changed += 1
            print(f"changed: expected {wanted}")
raise SystemExit(bool(changed))
PYTHON
"$folder/venv/bin/python" "$folder/measure.py"
# Output seen:
# mistral_instruct_tokenizer_240323.model.v3, no tools: 2 of 157 tokens
# mistral_instruct_tokenizer_240323.model.v3, one tool: 1 of 216 tokens
# tekken_240911.json, no tools: 2 of 156 tokens
# tekken_240911.json, one tool: 1 of 209 tokens
# mistral_instruct_tokenizer_241114.model.v7, no tools: 157 of 157 tokens
# mistral_instruct_tokenizer_241114.model.v7, one tool: 64 of 216 tokens
