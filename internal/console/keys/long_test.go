package keys_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/keys"
	"github.com/quorate/quorate/internal/console/page"
)

// pageAt is the page of keys at a path.
func pageAt(t *testing.T, path string) page.Page {
	t.Helper()
	for _, p := range keys.Pages() {
		if p.Path == path {
			return p
		}
	}
	t.Fatalf("there is no page %s", path)
	return page.Page{}
}

// Ensure that a page of deleted keys whose next page has no link says that there is more, and that a form is not filled with a
// part of a key.
func TestPages_tooLong(t *testing.T) {
	conn := consoletest.Conn{quoratepb.History_Deleted_FullMethodName: &quoratepb.DeletedAnswer{Revision: 9, FirstRevision: 1,
		NextPage: bytes.Repeat([]byte("x"), 7000)}}
	for _, found := range []bool{false, true} {
		answer := conn[quoratepb.History_Deleted_FullMethodName].(*quoratepb.DeletedAnswer)
		if found {
			answer.Keys = []*quoratepb.DeletedKey{{Key: []byte("a"), DeletedRevision: 4, ReadRevision: 3, Was: &quoratepb.KeyVersion{}}}
		}
		code, body := consoletest.Show(t, conn, pageAt(t, "/keys/deleted"), "/keys/deleted")
		if code != http.StatusOK || !strings.Contains(body, "More keys follow") || strings.Contains(body, "No key was deleted") {
			t.Errorf("with keys %v: %d, %s", found, code, body[strings.Index(body, "<main"):])
		}
	}
	_, body := consoletest.Show(t, conn, pageAt(t, "/keys/new"), "/keys/new?key="+strings.Repeat("k", 6001))
	if !strings.Contains(body, "too long for a form") || strings.Contains(body, "kkk") {
		t.Error("a form has a part of a key")
	}
}
