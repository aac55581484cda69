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

// Confine puts every member into a memory control group of its own, in which it is killed when it takes more. It returns false
// where this machine lets nobody make such groups: then the resident set is all there is to see. Remove removes the groups.
func (c *Cluster) Confine(bytes int64) (confined bool, remove func() error) {
	var made []string
	remove = func() (err error) {
		for _, dir := range made {
			err = errors.Join(err, os.Remove(dir))
		}
		return err
	}
	for _, m := range c.Members {
		dir, err := confine(m.process.Pid, bytes)
		if err != nil {
			return false, remove
		}
		made = append(made, dir)
	}
	return true, remove
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
