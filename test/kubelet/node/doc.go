// Package node is a kubelet whose containers are processes: it registers a node, runs the pods that the API binds to it,
// and tells the API of them. Package life decides, package box runs processes, package network connects them; here are the
// shells: informers, volumes, environments, probes, heartbeats.
//
// The API server reaches it for three things, of which the library of the kubelet's own serves two. It forwards ports of pods
// as container runtimes do: to the loopback address in the pod's network. It runs commands in containers, without terminals;
// these end with the container. It gives logs, of the last run or the one before it, which who asks may follow; it knows no
// times of lines, and keeps one log for both streams.
//
// A node can be killed, frozen, cut off from the API, and wiped, as machines are.
//
// It knows these volumes: emptyDir, configMap, secret, downwardAPI, projected, hostPath, and claims of package claims. Of
// security contexts it honours runAsUser, runAsGroup, fsGroup, supplementalGroups and readOnlyRootFilesystem, and ignores
// the rest (capabilities, seccomp, SELinux). It ignores resources but in resourceFieldRef, postStart hooks, and variables
// for services other than the API server's. It speaks to the API as an administrator, not as a node.
package node
