package config

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// EtcdVersion is the version of etcd whose API and flags this program speaks. Clients parse it.
const EtcdVersion = "3.7.1"

// Version is Quorate's own version; the release build sets it with -ldflags "-X …config.Version=1.2.3".
var Version = "0.1.0-dev"

// GitSHA names the source the program was built from; without a release build it is read from the build's own record.
var GitSHA = ""

// Revision returns the commit that the program was built from, or a text that says that it is unknown.
func Revision() string {
	if GitSHA != "" {
		return GitSHA
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return revision + dirty
}

// WriteVersion prints what --version prints. Tools of etcd look for the second line.
func WriteVersion(w io.Writer) {
	fmt.Fprintf(w, "quorate Version: %s\n", Version)
	fmt.Fprintf(w, "etcd Version: %s\n", EtcdVersion)
	fmt.Fprintf(w, "Git SHA: %s\n", Revision())
	fmt.Fprintf(w, "Go Version: %s\n", runtime.Version())
	fmt.Fprintf(w, "Go OS/Arch: %s/%s\n", runtime.GOOS, runtime.GOARCH)
}
