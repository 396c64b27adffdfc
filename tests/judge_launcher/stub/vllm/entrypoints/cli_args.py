"""Where the launcher looks for the flags that this version knows."""

default_chat_template_kwargs: dict[str, object] | None = None
