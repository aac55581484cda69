package console

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/console/page"
)

// templates are those of the frame, and of each page with the frame's.
type templates struct {
	frame *template.Template
	pages map[string]*template.Template // by path
}

func newTemplates(pages []page.Page) (*templates, error) {
	frame, err := template.New("").Funcs(page.Words).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, err
	}
	t := &templates{frame: frame, pages: map[string]*template.Template{}}
	for i := range pages {
		p := &pages[i]
		own, err := frame.Clone()
		if err == nil && p.Templates != nil {
			own, err = own.ParseFS(p.Templates, "*.html")
		}
		if err != nil {
			return nil, fmt.Errorf("console page %s: %w", p.Path, err)
		}
		if t.pages[p.Path] != nil {
			return nil, fmt.Errorf("two console pages are at %s", p.Path)
		}
		for _, s := range p.Sections {
			if own.Lookup(s.Template) == nil {
				return nil, fmt.Errorf("console page %s: section %s has no template %s", p.Path, s.ID, s.Template)
			}
		}
		t.pages[p.Path] = own
	}
	return t, nil
}

func (t *templates) of(p *page.Page) *template.Template { return t.pages[p.Path] }

// link is one page in the navigation.
type link struct {
	Path, Name string
	Here       bool
}

// frame is what surrounds the sections of a page.
type frame struct {
	Title, About string
	Links        []link
	Member       string
	User         string
	LoggedIn     bool // by a password: the user can log out
	Admin        bool
	Laboratory   bool
	Version      string
	Now          string
	Said         string
	Heading      string // of a fault of the whole page
	Fault        string
	Live         bool
	Sections     []section
	Back         string // where to go on from a fault
}

func (c *Console) frame(l *look) *frame {
	f := &frame{Member: c.options.Member, User: l.session.name(l.request), LoggedIn: l.session.token != "",
		Admin: c.options.Admin, Laboratory: c.hasLab, Version: c.options.Version,
		Now: page.Moment(time.Now().UnixMilli())}
	for i := range c.options.Pages {
		p := &c.options.Pages[i]
		if !p.Hidden {
			f.Links = append(f.Links, link{p.Path, p.Name, l.page != nil && within(l.page, p)})
		}
	}
	if l.page != nil {
		f.Title, f.About = l.page.Name, l.page.About
		if l.page.Title != nil {
			f.Title = cmp.Or(l.page.Title(c.requestOf(l)), f.Title)
		}
	}
	return f
}

// within reports whether a page is one of the navigation, or reached from it.
func within(p, of *page.Page) bool {
	return p.Path == of.Path || p.Hidden && strings.HasPrefix(p.Path, of.Path+"/")
}

// show answers with a page, or with its live sections.
func (c *Console) show(w http.ResponseWriter, r *http.Request, p *page.Page) {
	if r.URL.Query().Has(liveKey) {
		c.live(w, r, p)
		return
	}
	l := c.lookAt(r, p)
	sections, login := c.load(l, false, 0)
	if login {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	f := c.frame(l)
	f.Sections, f.Said = sections, c.said(w, r)
	for _, s := range p.Sections {
		f.Live = f.Live || s.Live
	}
	c.writePage(w, r, http.StatusOK, p, f)
}

// missing answers what is at no path.
func (c *Console) missing(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		f := c.frame(&look{request: r, session: c.sessionOf(r)})
		f.Title, f.Heading = "Not served", "This console changes nothing"
		f.Fault = "A member serves forms of its console only if it was started with --console=admin. Nothing was changed."
		c.writePage(w, r, http.StatusForbidden, nil, f)
		return
	}
	f := c.frame(&look{request: r, session: c.sessionOf(r)})
	f.Title, f.Heading = "Not found", "There is no such page"
	f.Fault = "The console has nothing at this address. The navigation has all its pages."
	c.writePage(w, r, http.StatusNotFound, nil, f)
}

func (c *Console) writePage(w http.ResponseWriter, r *http.Request, code int, p *page.Page, f *frame) {
	set := c.looks.frame
	if p != nil {
		set = c.looks.of(p)
	}
	c.write(w, r, code, set, "page.html", f)
}

// sendPatience is how long a browser may take to accept a page.
const sendPatience = 30 * time.Second

// write renders an answer and sends it. Its memory is of those who ask.
func (c *Console) write(w http.ResponseWriter, r *http.Request, code int, set *template.Template, name string, data any) {
	var out bytes.Buffer
	if err := set.ExecuteTemplate(&out, name, data); err != nil {
		c.fault(&c.broken, "the console cannot show a page", "path", r.URL.Path, "err", err)
		http.Error(w, "This page cannot be shown: the log of the member says why.", http.StatusInternalServerError)
		return
	}
	giveBack, err := c.options.Lend(r, out.Len())
	if err != nil {
		http.Error(w, "This member has no memory for the page now: load it again.", http.StatusServiceUnavailable)
		return
	}
	defer giveBack()
	conn := http.NewResponseController(w)
	if err := conn.SetWriteDeadline(time.Now().Add(sendPatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return // the connection has ended
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if _, err := w.Write(out.Bytes()); err == nil {
		_ = conn.Flush()
	}
	_ = conn.SetWriteDeadline(time.Time{}) // for the next request; where it fails, the connection has ended
}

// The outcome of an action is shown once, on the next page: until then the browser keeps it.
const (
	saidCookie   = "quorate-said"
	maxSaidBytes = 1024
)

func (c *Console) say(w http.ResponseWriter, said string) {
	if said == "" {
		return
	}
	value := base64.RawURLEncoding.EncodeToString([]byte(said[:min(len(said), maxSaidBytes)]))
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Value: value, Path: "/", MaxAge: 60, HttpOnly: true,
		Secure: c.options.Encrypted, SameSite: http.SameSiteStrictMode})
}

func (c *Console) said(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(saidCookie)
	if err != nil || len(cookie.Value) > 2*maxSaidBytes {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: c.options.Encrypted,
		SameSite: http.SameSiteStrictMode})
	said, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return page.Text(string(said))
}
