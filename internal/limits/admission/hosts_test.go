package admission_test

import (
	"testing"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that one host cannot take what all may have, and that what is given back can be had again.
func TestHostBound_Enter(t *testing.T) {
	b := admission.NewHostBound(3, 2)
	first, _ := b.Enter("a")
	if _, entered := b.Enter("a"); !entered {
		t.Fatal("the second of two was refused")
	}
	if _, entered := b.Enter("a"); entered {
		t.Fatal("one host has three")
	}
	if _, entered := b.Enter("b"); !entered {
		t.Fatal("another host was refused")
	}
	if _, entered := b.Enter("c"); entered {
		t.Fatal("four of three are taken")
	}
	first()
	if _, entered := b.Enter("c"); !entered {
		t.Fatal("what was given back can not be had")
	}
	if open, refused := b.Counts(); open != 3 || refused != 2 {
		t.Errorf("%d open, %d refused; want 3 and 2", open, refused)
	}
}

// Ensure that one who counts as many takes as many places, and gives all of them back.
func TestHostBound_EnterAs(t *testing.T) {
	b := admission.NewHostBound(5, 3)
	leave, entered := b.EnterAs("a", 3)
	if !entered {
		t.Fatal("three of three were refused")
	}
	if _, entered := b.Enter("a"); entered {
		t.Error("one host has four")
	}
	if _, entered := b.EnterAs("b", 3); entered {
		t.Error("six of five are taken")
	}
	leave()
	if open, refused := b.Counts(); open != 0 || refused != 2 {
		t.Errorf("%d open, %d refused; want 0 and 2", open, refused)
	}
	if _, entered := b.EnterAs("a", 3); !entered {
		t.Error("what was given back can not be had")
	}
}
