package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files of exec.Cmd.ExtraFiles.
const (
	networkFile = 3 // the network namespace
	specFile    = 4 // a pipe with the specification
	readyFile   = 5 // a pipe that ends when the command is executed
)

// Devices that every container has.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// enter builds the root, or enters one, and executes the command. It returns only if that fails.
func enter(existing bool) error {
	var spec Spec
	pipe := os.NewFile(specFile, "specification")
	if err := errors.Join(json.NewDecoder(pipe).Decode(&spec), pipe.Close()); err != nil {
		return fmt.Errorf("its specification cannot be read: %w", err)
	}
	if err := unix.Setns(networkFile, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("the network namespace of the pod cannot be entered: %w", err)
	}
	syscall.CloseOnExec(networkFile)
	syscall.CloseOnExec(readyFile)
	if existing {
		if err := enterName(spec.Root); err != nil {
			return fmt.Errorf("the name of the container cannot be taken: %w", err)
		}
	} else {
		if err := syscall.Sethostname([]byte(spec.Hostname)); err != nil {
			return fmt.Errorf("the name of the machine cannot be set: %w", err)
		}
		if err := build(spec); err != nil {
			return err
		}
	}
	if err := syscall.Chroot(spec.Root); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	if spec.WorkingDirectory == "" {
		spec.WorkingDirectory = "/"
	}
	if err := os.Chdir(spec.WorkingDirectory); err != nil {
		return err
	}
	return execute(spec)
}

// enterName enters the namespace of the host name of the process whose root this is.
func enterName(root string) error {
	file, err := os.Open(filepath.Join(filepath.Dir(root), "ns", "uts"))
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWUTS)
}

func execute(spec Spec) error {
	os.Clearenv()
	for _, variable := range spec.Env {
		name, value, _ := strings.Cut(variable, "=")
		os.Setenv(name, value)
	}
	if len(spec.Command) == 0 {
		return fmt.Errorf("neither the image nor the pod has a command")
	}
	path, err := exec.LookPath(spec.Command[0])
	if err != nil {
		return err
	}
	// Other threads of this process keep the ids that they have; they end with execve.
	if err := syscall.Setgroups(spec.Groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setgid(spec.GID); err != nil {
		return fmt.Errorf("setgid: %w", err)
	}
	if err := syscall.Setuid(spec.UID); err != nil {
		return fmt.Errorf("setuid: %w", err)
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, spec.Command, spec.Env))
}

// build mounts the root. The mount namespace is this process's own.
func build(spec Spec) error {
	if err := syscall.Mount("root", spec.Root, "tmpfs", 0, "mode=0755,size=64m"); err != nil {
		return fmt.Errorf("the root cannot be mounted: %w", err)
	}
	for _, name := range []string{"proc", "dev/shm", "etc", "tmp", "run"} {
		if err := os.MkdirAll(filepath.Join(spec.Root, name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"tmp", "dev/shm"} {
		if err := os.Chmod(filepath.Join(spec.Root, name), 0o1777|os.ModeSticky); err != nil {
			return err
		}
	}
	mounts := []Mount{{Source: "/proc", Target: "/proc"}}
	for _, name := range devices {
		mounts = append(mounts, Mount{Source: "/dev/" + name, Target: "/dev/" + name})
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Files)) {
		path := filepath.Join(spec.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(spec.Files[name]), 0o644); err != nil {
			return err
		}
	}
	own := slices.SortedStableFunc(slices.Values(spec.Mounts), func(a, b Mount) int { return depth(a) - depth(b) })
	for _, m := range append(mounts, own...) {
		if err := bind(spec.Root, m); err != nil {
			return err
		}
	}
	if spec.ReadOnly {
		if err := syscall.Mount("", spec.Root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("the root cannot be made read-only: %w", err)
		}
	}
	return nil
}

func depth(m Mount) int { return strings.Count(filepath.Clean(m.Target), "/") }

func bind(root string, m Mount) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	target := filepath.Join(root, m.Target)
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var file *os.File
		if file, err = os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("no place to mount %s: %w", m.Target, err)
	}
	if err := syscall.Mount(m.Source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("%s cannot be mounted: %w", m.Target, err)
	}
	if m.ReadOnly {
		if err := syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("%s cannot be made read-only: %w", m.Target, err)
		}
	}
	return nil
}
