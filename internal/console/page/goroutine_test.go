package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/console/page"
)

// Ensure that a fault in a goroutine of a page comes to where the page waits for it, with its place.
func TestGo(t *testing.T) {
	done := false
	page.Go(func() { done = true })()
	if !done {
		t.Error("the page has not waited")
	}
	wait := page.Go(func() { var none map[string]int; none["a fault"] = 1 })
	fault := func() (fault any) {
		defer func() { fault = recover() }()
		wait()
		return nil
	}()
	if text := fmt.Sprint(fault); !strings.Contains(text, "nil map") || !strings.Contains(text, "goroutine_test.go") {
		t.Errorf("got %v", fault)
	}
}
