package gateway

import "testing"

// Ensure that requests are bounded for each address and for all, and that what was answered counts no more.
func TestBodyBudget_enter(t *testing.T) {
	var b bodyBudget
	for _, host := range []string{"a", "b", "c", "d"} {
		if !b.enter(host, maxHostBodies) || b.enter(host, 1) {
			t.Errorf("%s did not get its share, or got more", host)
		}
	}
	if b.enter("e", 1) {
		t.Error("a fifth got more than there is for all")
	}
	b.leave("a", maxHostBodies)
	if bytes, refused := b.counts(); bytes != 3*maxHostBodies || refused != 5 || len(b.hosts) != 3 {
		t.Errorf("%d bytes of %d hosts, %d refused", bytes, len(b.hosts), refused)
	}
	if !b.enter("e", 1) {
		t.Error("there is no room although one was answered")
	}
}

// Ensure that there is room for one request, however large requests may be.
func TestBodyBudget_enter_largest(t *testing.T) {
	b := bodyBudget{largest: 2 * maxBodies}
	if !b.enter("a", b.largest) || b.enter("b", 1) {
		t.Error("there was no room for the largest, or for more")
	}
}
