package box

import (
	"io"
	"os"
)

// A Spec says what runs, and where.
type Spec struct {
	// Root is an empty directory, on which the root is built. Nobody else sees what is mounted there.
	Root string
	// Mounts are files and directories of the machine that the container sees.
	Mounts []Mount
	// Files are small files of the container's own, by absolute path, such as /etc/hosts.
	Files map[string]string
	// ReadOnly makes the root read-only; mounts are so only if they say it.
	ReadOnly bool

	Hostname         string
	Command          []string
	Env              []string // NAME=value
	WorkingDirectory string   // "/" if empty
	UID, GID         int
	Groups           []int
}

// A Mount binds a path of the machine to one of the container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Streams is where a process reads from and writes to; nil is /dev/null.
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}
