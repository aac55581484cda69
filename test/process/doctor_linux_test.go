package process_test

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/test/slowsync"
)

func init() { slowsync.Main() }

// slowDisk lets syncs of a member take longer, from when delay is called.
func (c *cluster) slowDisk(n *node) (delay func(time.Duration)) {
	disk := &slowsync.Disk{}
	n.begin = func(cmd *exec.Cmd) error {
		err := disk.Start(cmd)
		if err != nil && strings.Contains(err.Error(), "launcher failed") {
			c.t.Skip("this kernel or container allows no seccomp listener")
		}
		return err
	}
	return disk.Delay
}

// afterStart is a delay of the disk of the last member that begins a moment after its start.
func (c *cluster) afterStart(each time.Duration) {
	delay := c.slowDisk(c.nodes[len(c.nodes)-1])
	timer := time.AfterFunc(6*time.Second, func() { delay(each) })
	c.t.Cleanup(func() {
		timer.Stop()
		delay(0)
	})
}

// writing loads the cluster for a while.
func writing(c *cluster) { c.fill(100, 400) }

// systemAilments are faults that need something of Linux.
var systemAilments = []ailment{
	{name: "a slow disk of one member", dress: func(c *cluster) {
		delay := c.slowDisk(c.nodes[2])
		delay(120 * time.Millisecond)
	}, inject: writing, code: doctor.DiskSlow, status: 1, words: "the disk of m3 is slow"},
	{name: "a disk that hangs", dress: func(c *cluster) { c.afterStart(40 * time.Second) }, inject: func(c *cluster) {
		last(7 * time.Second)
		go writing(c)
	}, code: doctor.DiskHangs, status: 5, words: "the disk of m3 hangs"},
	{name: "few file descriptors", dress: func(c *cluster) {
		c.nodes[2].prepare = func(cmd *exec.Cmd) {
			cmd.Args = append([]string{"sh", "-c", `ulimit -n 50; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
		}
	}, inject: func(c *cluster) {
		for range 12 {
			client := c.connect(c.nodes[2])
			c.t.Cleanup(func() { _ = client.Close() })
			ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
			_, _ = client.Get(ctx, "k")
			cancel()
		}
	}, code: doctor.FilesNear, status: 5, words: "m3 has "},
}
