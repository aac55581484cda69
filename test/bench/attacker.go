package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// attackerCommand names the command by which this program starts itself as an attacker. It is for no other caller.
const attackerCommand = "attacker"

// attackerEnds is how long an attacker may take to end.
const attackerEnds = 10 * time.Second

// attacker is a process that attacks. It is not the bystander's, whose times are not to have its work in them, and has the
// lowest priority, as it would be elsewhere in earnest.
type attacker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     bytes.Buffer
}

func startAttacker(h *holding, m *cluster.Member, token string) (*attacker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &attacker{process: exec.Command("nice", "-n", "19", self, attackerCommand)}
	a.process.Stdout, a.process.Stderr = &a.out, os.Stderr
	// It does not outlive the run, nor does it see the terminal's interrupt.
	a.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if a.in, err = a.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := a.process.Start(); err != nil {
		return nil, err
	}
	e := errand{Name: h.name, Drawn: h.drawn, Seed: h.seed, Client: m.ClientAddr, Secure: m.SecureAddr, Peer: m.PeerAddr,
		Token: token}
	if err := json.NewEncoder(a.in).Encode(&e); err != nil {
		_, ended := a.end()
		return nil, errors.Join(err, ended)
	}
	return a, nil
}

// end ends the process, and returns what it has done.
func (a *attacker) end() (t tally, err error) {
	_ = a.in.Close() // it may be closed
	timer := time.AfterFunc(attackerEnds, func() { _ = a.process.Process.Kill() })
	defer timer.Stop()
	if err := a.process.Wait(); err != nil {
		return t, fmt.Errorf("the attacker: %w", err)
	}
	return t, json.Unmarshal(a.out.Bytes(), &t)
}

// attackHere is what the process of an attacker does.
func attackHere(ctx context.Context, _ []string) error { return attackBy(ctx, os.Stdin, os.Stdout) }

// attackBy reads an errand, attacks until there is nothing more to read, and writes what was done.
func attackBy(ctx context.Context, in io.Reader, out io.Writer) error {
	told := json.NewDecoder(in)
	var e errand
	if err := told.Decode(&e); err != nil {
		return fmt.Errorf("an attacker is started by hold: %w", err)
	}
	h, err := e.holding()
	if err != nil {
		return err
	}
	end := h.begin(ctx, &e)
	_, err = io.Copy(io.Discard, io.MultiReader(told.Buffered(), in))
	t := end()
	raw, failed := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	t.Nice = 20 - raw // the kernel's call returns no negative numbers
	var usage syscall.Rusage
	unknown := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	t.Spent = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return errors.Join(err, failed, unknown, json.NewEncoder(out).Encode(&t))
}

// holding is the attack that is meant.
func (e *errand) holding() (*holding, error) {
	if e.Drawn {
		h := draw(e.Seed)
		return &h, nil
	}
	for _, h := range allHoldings() {
		if h.name == e.Name {
			return &h, nil
		}
	}
	return nil, fmt.Errorf("no attack is called %q", e.Name)
}

// allHoldings are all attacks that are known.
func allHoldings() []holding {
	return slices.Concat(holdings, workings, stepping, slowReads, nativeSteps, services)
}
