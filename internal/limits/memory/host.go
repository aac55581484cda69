package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// ErrUnknown says that the system does not tell how much memory it has.
var ErrUnknown = errors.New("this system does not tell how much memory it has: give a size")

// ErrTooLittle says that a part of the memory is less than a member can work in.
var ErrTooLittle = errors.New("a member needs 128MiB")

// Host tells what a process may have.
type Host struct {
	// Files are those of the system: fs.FS of "/" on Linux. Elsewhere none are found, and nothing is known.
	Files fs.FS
}

// Available is the memory of the machine, or the limit of the control group of this process if that is less (cgroups of
// version 2, and of version 1).
func (h Host) Available() (int64, error) {
	total, err := h.machine()
	if err != nil {
		return 0, err
	}
	for _, group := range h.groups() {
		if limit, known := h.number(group); known {
			total = min(total, limit)
		}
	}
	return total, nil
}

// machine reads MemTotal of /proc/meminfo.
func (h Host) machine() (int64, error) {
	content, err := fs.ReadFile(h.Files, "proc/meminfo")
	if err != nil {
		return 0, ErrUnknown
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil || n <= 0 || n > math.MaxInt64>>10 {
				return 0, fmt.Errorf("%w: /proc/meminfo says %q", ErrUnknown, strings.TrimSpace(line))
			}
			return n << 10, nil
		}
	}
	return 0, ErrUnknown
}

// groups are the files with the limits of the control groups of this process: its own, and those around it. In a container
// the path that /proc tells may be that of the host; then the group is the root of what is mounted.
func (h Host) groups() []string {
	content, err := fs.ReadFile(h.Files, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(fields) < 3 {
			continue
		}
		root, name := "", ""
		switch {
		case fields[0] == "0":
			root, name = "sys/fs/cgroup", "memory.max"
		case strings.Contains(","+fields[1]+",", ",memory,"):
			root, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			files = append(files, path.Join(root, group, name))
			if group == "/" {
				break
			}
		}
	}
	return files
}

// number reads a file with a limit; "max" is none.
func (h Host) number(file string) (int64, bool) {
	content, err := fs.ReadFile(h.Files, file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return n, err == nil && n > 0
}

// Limit is how much a process may have that was given bytes, or percent of available: one of them is positive. With neither
// it is half of what is available, at most DefaultMost, and DefaultMost if that is not known.
func Limit(bytes int64, percent float64, available func() (int64, error)) (int64, error) {
	if bytes > 0 {
		return bytes, nil
	}
	all, err := available()
	if percent > 0 {
		if err != nil {
			return 0, err
		}
		limit := int64(float64(all) * percent / 100)
		if limit < MinLimit {
			return 0, fmt.Errorf("%d bytes: %w", limit, ErrTooLittle)
		}
		return limit, nil
	}
	if err != nil {
		return DefaultMost, nil
	}
	return max(MinLimit, min(all/2, DefaultMost)), nil
}
