"""What hostile clients, hostile samples and full disks do, each by name."""
