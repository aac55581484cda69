package ctl_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// Ensure that clients of the gateway reach a member, and that it ends as asked.
func TestRun_gateway(t *testing.T) {
	f := startFake(t)
	address := testnet.Address(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, listening := context.WithCancel(t.Context())
	log := ctltest.NewLineCounter(1, listening)
	ended := make(chan int, 1)
	go func() {
		line := []string{"gateway", "--endpoints=http://" + f.address, "start", "--listen-addr=" + address}
		ended <- ctl.Run(ctx, line, command.Streams{Err: log})
	}()
	<-ready.Done()
	ctltest.RunAt(t, address, "put", "a", "1").Want(t, 0, "OK\n", "")
	ctltest.RunAt(t, address, "get", "a").Want(t, 0, "a\n1\n", "")
	cancel()
	if status := <-ended; status != command.StatusOK || !strings.Contains(log.Text(), "ready to proxy client requests") {
		t.Errorf("got status %d and log %s", status, log.Text())
	}
}

// Ensure that a gateway that could serve no client says why.
func TestRun_gatewayRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"--endpoints=a":                              "--endpoints a: address a: missing port in address",
		"--endpoints=":                               "--endpoints names no member",
		"--listen-addr=x":                            "--listen-addr x: address x: missing port",
		"--retry-delay=0s":                           "--retry-delay 0s: give a time, such as 1m",
		"--discovery-srv-name=blue":                  "--discovery-srv-name needs --discovery-srv",
		"--listen-addr=:2379":                        "--endpoints 127.0.0.1:2379: the gateway itself listens there",
		"--listen-addr=[::]:2379":                    "the gateway itself listens there",
		"--endpoints=127.0.0.1:23790,127.0.0.1:2379": "--endpoints 127.0.0.1:23790: the gateway itself listens there",
	} {
		ctltest.Run(t, t.Context(), command.Streams{}, "", "gateway", "start", line).Want(t, command.StatusUsage, "", want)
	}
}
