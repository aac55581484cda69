package main

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// takeSteps has a caller do something three times.
func takeSteps(t *testing.T, s *heldServer, do step) {
	t.Helper()
	conn, err := grpc.NewClient(serveHeld(t, s), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range int64(3) {
		if err := do(t.Context(), conn, i); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEndLeases wants each lease to have keys when it ends: one that has none, or is gone, costs nothing.
func TestEndLeases(t *testing.T) {
	s := &heldServer{hung: map[int64]int{}}
	takeSteps(t, s, endLeases)
	if want := []int64{workLease, workLease + 1, workLease + 2}; !slices.Equal(s.revoked, want) {
		t.Errorf("revoked %v, want %v", s.revoked, want)
	}
	for _, id := range []int64{workLease + 1, workLease + 2} {
		if s.hung[id] != roundKeys {
			t.Errorf("%d keys hang on lease %d, want %d", s.hung[id], id, roundKeys)
		}
	}
}

func TestDeleteKeysAgain(t *testing.T) {
	s := &heldServer{hung: map[int64]int{}}
	takeSteps(t, s, deleteKeysAgain)
	if want := []int{0, deleteKeys, 2 * deleteKeys}; !slices.Equal(s.deleted, want) {
		t.Errorf("keys before each deletion, beside the filling: %v, want %v", s.deleted, want)
	}
}
