package config

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// EtcdVersion is the version of etcd whose API and flags this program speaks. Clients parse it.
const EtcdVersion = "3.7.3"

// Version is Quorate's own version; the release build sets it with -ldflags "-X …config.Version=1.2.3".
var Version = "1.1.0-dev"

// GitSHA names the source the program was built from; without a release build it is read from the build's own record.
var GitSHA = ""

// Revision returns the commit that the program was built from, or a text that says that it is unknown.
func Revision() string { return sourceOf(debug.ReadBuildInfo()).revision }

// Build names this build: Version and, if it is not of a release, when its source was committed, and the commit:
// 1.1.0-dev+20261124.3f1448cbc1f2. It is one word, which members tell each other.
func Build() string { return buildOf(Version, sourceOf(debug.ReadBuildInfo())) }

// source is what a program was built from, as go build writes it down.
type source struct{ revision, day string }

func sourceOf(info *debug.BuildInfo, ok bool) source {
	s := source{revision: GitSHA}
	if !ok || GitSHA != "" {
		s.revision = cmp.Or(s.revision, unknown)
		return s
	}
	s.revision = unknown
	dirty := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			s.revision = setting.Value[:min(len(setting.Value), 12)]
		case setting.Key == "vcs.time":
			if at, err := time.Parse(time.RFC3339, setting.Value); err == nil {
				s.day = at.UTC().Format("20060102")
			}
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "-dirty"
		}
	}
	s.revision += dirty
	return s
}

const unknown = "unknown"

func buildOf(version string, s source) string {
	if !strings.HasSuffix(version, "-dev") || strings.HasPrefix(s.revision, unknown) {
		return version
	}
	if s.day != "" {
		version += "+" + s.day + "."
	} else {
		version += "+"
	}
	return version + s.revision
}

// WriteVersion prints what --version prints. Tools of etcd look for the second line.
func WriteVersion(w io.Writer) {
	fmt.Fprintf(w, "quorate Version: %s\n", Build())
	fmt.Fprintf(w, "etcd Version: %s\n", EtcdVersion)
	fmt.Fprintf(w, "Git SHA: %s\n", Revision())
	fmt.Fprintf(w, "Go Version: %s\n", runtime.Version())
	fmt.Fprintf(w, "Go OS/Arch: %s/%s\n", runtime.GOOS, runtime.GOARCH)
}
