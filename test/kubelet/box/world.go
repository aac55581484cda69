package box

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/vishvananda/netlink"
)

// World is the environment variable of a program that runs in a world of its own.
const World = "QUORATE_KUBELET_WORLD"

// InWorld starts this program again, with its arguments, in namespaces of its own for processes, mounts and the network,
// and ends with its exit status. It returns if it is in such a world already. Nothing that runs in it survives it.
func InWorld() error {
	if os.Getenv(World) != "" {
		return settle()
	}
	if os.Geteuid() != 0 {
		return errors.New("it makes namespaces and mounts: run it as root, on Linux")
	}
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), World+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if err := onSpawner(command.Start); err != nil {
		return fmt.Errorf("namespaces cannot be made here: %w", err)
	}
	go func() {
		for s := range signals {
			command.Process.Signal(s)
		}
	}()
	err := command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	os.Exit(command.ProcessState.ExitCode())
	return nil
}

func settle() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts cannot be made private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc cannot be mounted: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}
