package pages_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is TimeoutStopSec of the unit.
const stopTimeout = 30 * time.Second

// systemctl starts and stops what the unit of the packages says, as systemd does for a unit of Type=notify. A test machine runs
// no systemd.
func systemctl(args []string) error {
	words := strings.Join(args, " ")
	switch words {
	case "enable --now quorate", "start quorate":
		return startUnit()
	case "stop quorate", "disable --now quorate":
		return stopUnit()
	case "restart quorate":
		if err := stopUnit(); err != nil {
			return err
		}
		return startUnit()
	case "kill -s KILL quorate":
		return killUnit()
	}
	if done, err := kubeletUnit(words); done {
		return err
	}
	return fmt.Errorf("systemctl %s: the stand-in does not know it", words)
}

func stateFile(name string) string { return filepath.Join(os.Getenv(stateVar), name) }

// setting is the value of a key of the unit.
func setting(key string) ([]string, error) {
	text, err := os.ReadFile(os.Getenv(unitVar))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if words, found := strings.CutPrefix(line, key+"="); found {
			return strings.Fields(words), nil
		}
	}
	return nil, fmt.Errorf("the unit has no %s", key)
}

// startUnit starts the process, and returns when it has said that it is ready.
func startUnit() error {
	words, err := setting("ExecStart")
	if err != nil {
		return err
	}
	if err := readable(); err != nil {
		return err
	}
	state, err := setting("StateDirectory")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join("/var/lib", state[0]), 0o700); err != nil {
		return err
	}
	socket := stateFile("notify")
	_ = os.Remove(socket)
	notified, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = notified.Close() }()
	log, err := os.OpenFile(stateFile("journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	unit := exec.Command(filepath.Base(words[0]), words[1:]...) // the packages install it elsewhere
	unit.Stdout, unit.Stderr, unit.Env = log, log, []string{"PATH=" + os.Getenv("PATH"), "NOTIFY_SOCKET=" + socket}
	unit.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := unit.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(stateFile("unit"), strconv.AppendInt(nil, int64(unit.Process.Pid), 10), 0o600); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- unit.Wait() }()
	ready := make(chan error, 1)
	go func() { ready <- awaitReady(notified) }()
	select {
	case err := <-ready:
		return err
	case err := <-ended:
		said, _ := os.ReadFile(stateFile("journal"))
		return fmt.Errorf("the unit has ended: %w\n%s", err, said[max(0, len(said)-4096):])
	}
}

func awaitReady(notified *net.UnixConn) error {
	for message := make([]byte, 4096); ; {
		n, err := notified.Read(message)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(message[:n]) {
			if string(bytes.TrimSpace(line)) == "READY=1" {
				return nil
			}
		}
	}
}

func unitProcess() (int, error) {
	text, err := os.ReadFile(stateFile("unit"))
	if err != nil {
		return 0, errors.New("the unit was not started")
	}
	return strconv.Atoi(string(text))
}

// killUnit kills the process. No systemd starts it again.
func killUnit() error {
	pid, err := unitProcess()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// stopUnit sends SIGTERM, and waits until the process has ended.
func stopUnit() error {
	pid, err := unitProcess()
	if err != nil {
		return err
	}
	_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended by itself
	poll, late := time.NewTicker(20*time.Millisecond), time.After(stopTimeout)
	defer poll.Stop()
	for {
		if gone(pid) {
			return os.Remove(stateFile("unit"))
		}
		select {
		case <-poll.C:
		case <-late:
			return errors.New("the unit does not end")
		}
	}
}

// gone reports whether a process has ended. One that its parent did not wait for is a zombie.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := bytes.Cut(text, []byte(") "))
	return bytes.HasPrefix(after, []byte("Z"))
}

// scp copies files to or from another machine, `root@10.0.0.N:PATH`, through the root directory of its shell.
func scp(args []string) error {
	if len(args) < 3 || args[0] != "-q" {
		return fmt.Errorf("scp %v: the stand-in does not know it", args)
	}
	to, err := place(args[len(args)-1])
	if err != nil {
		return err
	}
	for _, arg := range args[1 : len(args)-1] {
		from, err := place(arg)
		if err != nil {
			return err
		}
		if err := copyFile(from, to); err != nil {
			return err
		}
	}
	return nil
}

// place is where a file of another machine is here.
func place(arg string) (string, error) {
	host, path, remote := strings.Cut(arg, ":")
	if !remote {
		return arg, nil
	}
	address := strings.TrimPrefix(host, "root@")
	pid, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv(stateVar)), address, "pid"))
	if err != nil {
		return "", fmt.Errorf("%s: no such machine", host)
	}
	return fmt.Sprintf("/proc/%s/root%s", pid, path), nil
}

func copyFile(from, to string) error {
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, filepath.Base(from))
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// keysDir is where the pages keep the files of TLS of a member.
const keysDir = "/etc/quorate/tls"

// chown notes the files that a user is given: there is one user on the machine of a test. A file that is overwritten stays the
// user's.
func chown(args []string) error {
	if len(args) != 3 || args[0] != "-R" || !strings.HasSuffix(args[1], ":") {
		return fmt.Errorf("chown %v: the stand-in does not know it", args)
	}
	owned, err := os.OpenFile(stateFile("owned-by-"+strings.TrimSuffix(args[1], ":")), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(filepath.WalkDir(args[2], func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = fmt.Fprintln(owned, path)
		}
		return err
	}), owned.Close())
}

// readable refuses to start a unit whose user cannot read the keys.
func readable() error {
	user, err := setting("User")
	if err != nil {
		return err
	}
	owned, err := os.ReadFile(stateFile("owned-by-" + user[0]))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return filepath.WalkDir(keysDir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && !slices.Contains(strings.Split(string(owned), "\n"), path) {
			err = fmt.Errorf("the user %s of the unit cannot read %s", user[0], path)
		}
		return err
	})
}
