"""Markers of chat templates, tools and reasoning, which mean nothing where they cannot be markup."""

from __future__ import annotations

BAR, LOW = "\uff5c", "\u2581"
END_TOKENS = (
    *(
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|eot|>",
        "<|eom|>",
        "</s>",
        "<eos>",
    ),
    *("<end_of_turn>", "<turn|>", "<seed:eos>", "<|end|>", "<|return|>", "<|call|>", "[e~[", "[EOS]", "<SPECIAL_12>"),
    *("<|END_OF_TURN_TOKEN|>", "[|endofturn|]", f"<{BAR}end{LOW}of{LOW}sentence{BAR}>"),
)
HEADERS = (
    *("<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_start|>", "<|start_header_id|>user<|end_header_id|>\n\n"),
    *("<|header_start|>assistant<|header_end|>\n\n", "<start_of_turn>model\n", "<|turn>user\n", "[INST]", "[/INST]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", f"<{BAR}User{BAR}>", f"<{BAR}Assistant{BAR}>", "<seed:bos>user\n"),
    *("<|start|>assistant<|channel|>final<|message|>", "<|channel|>analysis<|message|>", "<|channel|>", "<|message|>"),
    *("<|user|>\n", "<|assistant|>\n", "<|observation|>\n", "<|im_user|>user<|im_middle|>", "]~b]ai\n", "<s>", "<bos>"),
    *(
        "<|start_of_role|>user<|end_of_role|>",
        "<SPECIAL_11>User\n",
        "<extra_id_1>Assistant\n",
        "[|user|]",
        "[gMASK]<sop>",
    ),
    *("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|begin_of_text|>"),
)
TOOL_TAGS = (
    *("<tool_response>", "</tool_response>", "<information>", "</information>", "<result>", "</result>", "<output>"),
    *("<interpreter>", "<execution_result>", "<observation>", "</tool_call>", "</search>", "<|tool_response>"),
    *("<TOOL_RESPONSE>", "</TOOLCALL>", "<tool_response>x</tool_response>", "<information>x</information>"),
    *("<|begin_search_result|>", "<|end_search_result|>", f"<{BAR}tool{LOW}outputs{LOW}begin{BAR}>"),
)
REASONING = ("<think>", "</think>", "</thinking>", "[/THINK]", "<channel|>", "\u25c1/think\u25b7", "</seed:think>")
MARKERS = (*END_TOKENS, *HEADERS, *TOOL_TAGS, *REASONING)
