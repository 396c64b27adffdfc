#!/bin/bash
# A cluster of Slurm on this machine, run by root of a container: cluster.sh FOLDER, which holds slurm.conf. Its nodes have
# one file system and one network; logs of its daemons go into that folder.
set -eu

folder=$1
mkdir -p /run/munge /var/lib/cluster /etc/slurm
chown munge: /run/munge
cp "$folder/slurm.conf" /etc/slurm/slurm.conf
useradd -m other
su munge -s /bin/sh -c munged
slurmctld -D >"$folder/slurmctld.log" 2>&1 &
sed -n 's/^NodeName=\([a-z0-9]*\) .*/\1/p' "$folder/slurm.conf" | while read -r node; do
    mkdir -p "/var/lib/cluster/$node"
    slurmd -D -N "$node" >"$folder/$node.log" 2>&1 &
done
exec sleep infinity
