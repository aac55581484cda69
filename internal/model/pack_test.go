package model

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"testing"
)

// Ensure that packing keeps every byte.
func TestState_pack(t *testing.T) {
	var s, back State
	m := New(&Scenario{Members: 3, Configs: []Config{{Old: 7}}}, rules.Set{})
	m.Begin(&s)
	s.R = Read{Stage: ReadAsked, Reader: 3, ToldTerm: [MaxMembers]int8{0, 1, 0, 0, 7}}
	Unpack(Pack(&s, nil), &back)
	if s != back {
		t.Errorf("got %+v, want %+v", back, s)
	}
}
