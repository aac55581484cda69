package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// memoryGroups is where groups of the memory controller are, version 1, and version 2.
var memoryGroups = []struct{ dir, limit string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
}

// confineAll puts each process into a memory control group of its own, in which it is killed when it takes more. It returns the
// groups that it made, and false where this machine does not allow them all: then the resident set is all there is to see.
func confineAll(pids []int, mib int64) (groups []string, confined bool) {
	for _, pid := range pids {
		dir, err := confine(pid, mib<<20)
		if err != nil {
			return groups, false
		}
		groups = append(groups, dir)
	}
	return groups, true
}

func confine(pid int, bytes int64) (dir string, err error) {
	for _, group := range memoryGroups {
		if _, missing := os.Stat(filepath.Join(group.dir, "cgroup.procs")); missing != nil {
			continue
		}
		dir = filepath.Join(group.dir, fmt.Sprintf("quorate-bench-%d", pid))
		if err = os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		err = errors.Join(os.WriteFile(filepath.Join(dir, group.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600),
			os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
		if err == nil {
			return dir, nil
		}
		err = errors.Join(err, os.Remove(dir))
	}
	return "", errors.Join(errors.New("no memory control group can be made"), err)
}
