package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what processes take together.
type usage struct {
	processes int
	pss, rss  int64         // bytes; pss counts a page that n processes share as an nth for each
	cpu       time.Duration // since each began
}

func (u usage) String() string {
	return fmt.Sprintf("%d processes, PSS %d MiB, RSS %d MiB", u.processes, u.pss>>20, u.rss>>20)
}

// usageOf adds up what processes take. One that has ended takes nothing.
func usageOf(pids []int) (u usage) {
	for _, pid := range pids {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		stat, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, named := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if err != nil || err2 != nil || !named || len(fields) < 13 || len(maps) == 0 {
			continue
		}
		u.processes++
		u.cpu += ticks(fields[11]) + ticks(fields[12]) // of the user, and of the system
		for line := range strings.Lines(string(maps)) {
			words := strings.Fields(line)
			if len(words) != 3 || words[2] != "kB" {
				continue
			}
			kilobytes, _ := strconv.ParseInt(words[1], 10, 64) // the kernel writes numbers
			switch words[0] {
			case "Pss:":
				u.pss += kilobytes << 10
			case "Rss:":
				u.rss += kilobytes << 10
			}
		}
	}
	return u
}

// ticks are hundredths of a second on Linux, on every processor that Go knows.
func ticks(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64) // the kernel writes numbers
	return time.Duration(n) * 10 * time.Millisecond
}

// cores is how many processors were busy for that long.
func cores(before, after usage, took time.Duration) float64 {
	return (after.cpu - before.cpu).Seconds() / took.Seconds()
}
