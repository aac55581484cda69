package console_test

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

// Ensure that the navigation leads to the laboratory where a build has it, and nowhere else; its address says why there is none.
func TestConsole_laboratory(t *testing.T) {
	none := errors.New("this build has no laboratory: make lab")
	for _, row := range []struct {
		files func() (fs.FS, error)
		link  bool
		code  int
	}{
		{nil, false, http.StatusNotFound},
		{func() (fs.FS, error) { return nil, none }, false, http.StatusNotFound},
		{func() (fs.FS, error) { return fstest.MapFS{"index.html": {Data: []byte("the laboratory")}}, nil }, true, http.StatusOK},
	} {
		h, _ := serve(t, &member{}, sample(says("x")), func(s *setting) { s.Laboratory = row.files })
		if link := strings.Contains(get(h, "/sample").Body.String(), `href="/lab/"`); link != row.link {
			t.Errorf("a link: %v, want %v", link, row.link)
		}
		if w := get(h, "/lab/"); w.Code != row.code {
			t.Errorf("the laboratory: %d, want %d", w.Code, row.code)
		}
	}
}
