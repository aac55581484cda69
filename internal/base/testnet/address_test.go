package testnet_test

import (
	"net"
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
