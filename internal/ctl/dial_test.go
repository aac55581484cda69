package ctl_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// Ensure that commands reach members by the dialer of their context alone: the endpoint, and the address that a member tells.
func TestRun_dialer(t *testing.T) {
	const told = "m1.members.db.svc:2379"
	f := startFake(t)
	f.members[0].ClientURLs = []string{"http://" + told}
	for _, line := range []string{"put a 1", "status", "member list", "doctor"} {
		var dialled atomic.Int64
		ctx := command.WithDialer(t.Context(), func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != told {
				t.Errorf("%s: dials %s %s", line, network, address)
			}
			dialled.Add(1)
			return (&net.Dialer{}).DialContext(ctx, "tcp", f.address)
		})
		got := ctltest.Run(t, ctx, ctltest.At(told), "", strings.Fields(line)...)
		if got.Status == command.StatusUnreachable || got.Status == command.StatusUsage || dialled.Load() == 0 ||
			strings.Contains(got.Out+got.Err, "no such host") {
			t.Errorf("%s: %+v after %d connections", line, got, dialled.Load())
		}
	}
}

// Ensure that a dialer's own reason is told.
func TestRun_dialerRefuses(t *testing.T) {
	ctx := command.WithDialer(t.Context(), func(context.Context, string, string) (net.Conn, error) {
		return nil, net.UnknownNetworkError("the pod m1 is gone")
	})
	got := ctltest.Run(t, ctx, ctltest.At("m1.members.db.svc:2379"), "", "get", "a", "--timeout=300ms")
	got.Want(t, command.StatusUnreachable, "", "the pod m1 is gone")
}

func TestRunsEtcdctl(t *testing.T) {
	for line, want := range map[string]bool{
		"get a": false, "get a --order=DESCEND": true, "user add u": true, "etcdctl get a": true, "--write-out=json get a": true,
		"member drain m4": false, "doctor": false, "nothing": false, "help": false,
	} {
		if got := ctl.RunsEtcdctl(strings.Fields(line), command.Streams{}); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}
