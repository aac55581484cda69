package memory_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/quorate/quorate/internal/limits/memory"
)

func TestHost_Available(t *testing.T) {
	const meminfo = "MemTotal:       16777216 kB\nMemFree:        1 kB\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no control group", map[string]string{"proc/meminfo": meminfo}, 16 << 30},
		{"version 2, no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a.slice/b\n",
			"sys/fs/cgroup/a.slice/b/memory.max": "max\n"}, 16 << 30},
		{"version 2, the group's own", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a.slice/b\n",
			"sys/fs/cgroup/a.slice/b/memory.max": "1073741824\n"}, 1 << 30},
		{"version 2, the group around it has less", map[string]string{"proc/meminfo": meminfo,
			"proc/self/cgroup": "0::/a.slice/b\n", "sys/fs/cgroup/a.slice/b/memory.max": "2147483648\n",
			"sys/fs/cgroup/a.slice/memory.max": "1073741824\n"}, 1 << 30},
		{"version 2 in a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		{"version 2, out of a container's sight", map[string]string{"proc/meminfo": meminfo,
			"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		{"version 1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu:/\n4:hugetlb,memory:/pod\n",
			"sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "268435456\n"}, 256 << 20},
		{"version 1, mounted at the container's group", map[string]string{"proc/meminfo": meminfo,
			"proc/self/cgroup": "4:memory:/docker/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n"},
			256 << 20},
		{"version 1, no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16 << 30},
		{"strange files", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\nx\n",
			"sys/fs/cgroup/memory.max": "-7\n"}, 16 << 30},
	} {
		files := fstest.MapFS{}
		for name, content := range tc.files {
			files[name] = &fstest.MapFile{Data: []byte(content)}
		}
		if got, err := (memory.Host{Files: files}).Available(); err != nil || got != tc.want {
			t.Errorf("%s: got %d, %v, want %d", tc.name, got, err, tc.want)
		}
	}
	for _, content := range []string{"", "MemTotal: x kB\n", "MemTotal: 99999999999999999 kB\n"} {
		files := fstest.MapFS{"proc/meminfo": {Data: []byte(content)}}
		if _, err := (memory.Host{Files: files}).Available(); !errors.Is(err, memory.ErrUnknown) {
			t.Errorf("meminfo %q: got %v", content, err)
		}
	}
}

func TestLimit(t *testing.T) {
	has := func(bytes int64) func() (int64, error) { return func() (int64, error) { return bytes, nil } }
	unknown := func() (int64, error) { return 0, memory.ErrUnknown }
	for _, tc := range []struct {
		name      string
		bytes     int64
		percent   float64
		available func() (int64, error)
		want      int64
	}{
		{"what was given", 5 << 30, 0, has(1 << 30), 5 << 30},
		{"a part", 0, 75, has(1 << 30), 768 << 20},
		{"half", 0, 0, has(1 << 30), 512 << 20},
		{"half of much", 0, 0, has(64 << 30), 4 << 30},
		{"half of little", 0, 0, has(200 << 20), memory.MinLimit},
		{"half of what nobody knows", 0, 0, unknown, 4 << 30},
	} {
		if got, err := memory.Limit(tc.bytes, tc.percent, tc.available); err != nil || got != tc.want {
			t.Errorf("%s: got %d, %v, want %d", tc.name, got, err, tc.want)
		}
	}
	if _, err := memory.Limit(0, 50, unknown); !errors.Is(err, memory.ErrUnknown) {
		t.Errorf("a part of what nobody knows: got %v", err)
	}
	if _, err := memory.Limit(0, 1, has(1<<30)); !errors.Is(err, memory.ErrTooLittle) {
		t.Errorf("a part that is too little: got %v", err)
	}
}
