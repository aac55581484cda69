package cluster

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const tick = 10 * time.Millisecond // Linux reports CPU time to programs in hundredths of a second everywhere

// cpuTime is what a process has spent in user and kernel mode: fields 14 and 15 of its stat.
func cpuTime(pid int) time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	text := string(content)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may hold blanks; then comes field 3
	if len(fields) < 13 {
		return 0
	}
	return time.Duration(number(fields[11])+number(fields[12])) * tick
}

// ownCPUTime is what the load generator itself has spent.
func ownCPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// machineTime is how long the machine's cores were not idle, whichever process used them; the hypervisor's share counts too.
func machineTime() time.Duration {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), "\n")
	sum := int64(0)
	for i, field := range strings.Fields(first) {
		if i >= 1 && i <= 8 && i != 4 && i != 5 { // all but idle and iowait
			sum += number(field)
		}
	}
	return time.Duration(sum) * tick
}

// residentKiB reads a line of a process's status: VmRSS for now, VmHWM for the largest since forgetPeak.
func residentKiB(pid int, line string) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for text := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(text, line+":"); ok {
			return number(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	return 0
}

// forgetPeak lets VmHWM begin again. Where the kernel refuses, the peak is that of the process's whole life.
func forgetPeak(pid int) { _ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) }

func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Machine describes where a run took place.
func Machine() string {
	model := "unknown CPU"
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for text := range strings.Lines(string(content)) {
			if name, ok := strings.CutPrefix(text, "model name"); ok {
				model = strings.TrimLeft(strings.TrimSpace(name), ": ")
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s, %s/%s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH)
}
