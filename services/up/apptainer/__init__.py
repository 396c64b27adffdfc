"""Run the stack under Apptainer: the processes of the native deployment, each in an image, without root."""
