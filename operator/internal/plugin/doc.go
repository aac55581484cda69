// Package plugin is `kubectl quorate`: it finds the pods of a cluster, takes certificates and the password from their Secrets,
// and runs quorate's command line (internal/ctl) in this process, whose connections go through ports that the API server
// forwards.
//
// A command dials the addresses that members tell, and the dialer (road.go) leads those of pods through Kubernetes: so commands
// that ask each member work, and no port of this machine is open, which others on it could use. The dialer encrypts, with
// certificates that are in memory alone. Lines that end in etcdctl's code run in a child process (child.go), for that code
// knows no dialer and may end the process: the child gets sockets in a directory that is this user's alone.
//
// Flags, variables and volumes of a pod say what it serves clients with (pod.go). So it does not matter whether the
// operator, a chart or a person made it.
package plugin
