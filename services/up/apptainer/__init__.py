"""Run the stack under Apptainer without root: the processes of the native deployment, each in an image."""
