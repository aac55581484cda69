package dev_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Ensure that no member outlives a parent that had no chance to stop it.
func TestRun_killedParent(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(basePort(t))
	parent := exec.Command(program, t.TempDir()+"/d", port)
	parent.Env = append(os.Environ(), fakeVariable+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "ready after") {
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The member's end of the connection closes when it dies. The deadline only ends a test that has failed.
	conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for buffer := make([]byte, 512); err == nil; {
		_, err = conn.Read(buffer)
	}
	if n, ok := err.(net.Error); ok && n.Timeout() {
		t.Error("the member outlived its parent")
	}
	parent.Wait()
}
