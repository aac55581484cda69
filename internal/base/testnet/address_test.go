package testnet_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
)

func TestAddress(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		address := testnet.Address(t)
		if seen[address] {
			t.Fatalf("%s is given twice", address)
		}
		seen[address] = true
	}
	taken := testnet.Address(t)
	l, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if next := testnet.Address(t); next == taken {
		t.Errorf("%s is given although somebody listens there", taken)
	}
}

// TestAddress_otherProcess is a process that prints the addresses that it gets; its parent demands that none of them is its own.
func TestAddress_otherProcess(t *testing.T) {
	const asked = "QUORATE_TESTNET_PRINT"
	if os.Getenv(asked) != "" {
		for range 300 { // more than a block
			fmt.Println(testnet.Address(t))
		}
		return
	}
	own := map[string]bool{}
	for range 150 {
		own[testnet.Address(t)] = true
	}
	other := exec.Command(os.Args[0], "-test.run=^TestAddress_otherProcess$")
	other.Env = append(os.Environ(), asked+"=1")
	out, err := other.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "127.") {
			continue
		}
		if got++; own[line] {
			t.Errorf("%s is given to two processes", line)
		}
	}
	if got != 300 {
		t.Errorf("%d addresses, want 300", got)
	}
}
