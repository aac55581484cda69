package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/quorate/quorate/internal/console/page"
)

// addFiles adds the handlers of files that browsers save.
func (c *Console) addFiles(p *page.Page) {
	for i := range p.Files {
		f := &p.Files[i]
		c.mux.HandleFunc("GET "+f.Path, func(w http.ResponseWriter, r *http.Request) { c.file(w, r, p, f) })
	}
}

// file sends a file. No browser shows it as a page.
func (c *Console) file(w http.ResponseWriter, r *http.Request, p *page.Page, f *page.File) {
	l := c.lookAt(r, p)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	contents, done, err := c.contents(ctx, l, f)
	defer done()
	switch {
	case err != nil && asksForLogin(err):
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	case err != nil:
		c.refuse(w, r, p, http.StatusNotFound, err)
		return
	}
	giveBack, err := c.options.Lend(r, len(contents.Body))
	if err != nil {
		http.Error(w, "This member has no memory for the file now: load it again.", http.StatusServiceUnavailable)
		return
	}
	defer giveBack()
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(sendPatience)) // where it fails, the connection has ended
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+contents.Name+`"`)
	if _, err := w.Write(contents.Body); err == nil {
		_ = conn.Flush()
	}
	_ = conn.SetWriteDeadline(time.Time{})
}

// contents loads a file in turn with the sections of pages. done gives back what the calls hold.
func (c *Console) contents(ctx context.Context, l *look, f *page.File) (of page.Contents, done func(), err error) {
	leave, err := c.turn(ctx, l.request)
	if err != nil {
		return page.Contents{}, func() {}, err
	}
	defer leave()
	ctx, done = c.options.Enter(l.request.WithContext(ctx))
	ctx = l.session.with(ctx)
	defer func() {
		if failed := c.caught(recover(), l.page.Path, f.Path); failed != nil {
			of, err = page.Contents{}, failed
		}
	}()
	of, err = f.Load(ctx, c.requestOf(l))
	return of, done, err
}
