// Package box runs processes as containers are run: each in a mount namespace of its own, with a root and a host name, and
// in the network namespace of its pod. A root holds the files of the image, the volumes, and what every container has: /proc,
// /dev, /tmp, /etc/resolv.conf. There are no cgroups: memory and processor time are not bounded, and processes see each
// other.
//
// It wants root on Linux. A program that uses it calls Main first: it is started again as the process that builds the root
// and then executes the command.
package box
