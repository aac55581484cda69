package console

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
)

const (
	// actionPatience is how long an action may take.
	actionPatience = 10 * time.Second
	// backKey in a form is where its reader goes on if it is refused: by default to its page without a query.
	backKey = "back"
	// maxActionBytes bounds a form of an action: it may hold the value of a key.
	maxActionBytes = 4 << 20
)

// addActions adds the handlers that change something.
func (c *Console) addActions(p *page.Page) {
	for i := range p.Actions {
		a := &p.Actions[i]
		c.mux.HandleFunc("POST "+a.Path, func(w http.ResponseWriter, r *http.Request) { c.act(w, r, p, a) })
	}
}

// act performs an action. Whatever its outcome, the browser goes on to a page: sending the form twice needs a second click.
func (c *Console) act(w http.ResponseWriter, r *http.Request, p *page.Page, a *page.Action) {
	give, err := c.takeForm(w, r, maxActionBytes)
	defer give()
	if err != nil {
		const said = page.FormError("The form cannot be read, or is larger than 4 MiB. Nothing was changed.")
		c.refuse(w, r, p, http.StatusBadRequest, said)
		return
	}
	l := c.lookAt(r, p)
	ctx, done := c.options.Enter(r)
	defer done()
	ctx, cancel := context.WithTimeout(l.session.with(ctx), actionPatience)
	defer cancel()
	asked := c.requestOf(l)
	asked.Conn, asked.Form = c.options.Conn, r.PostForm
	out, err := c.do(ctx, asked, p, a)
	switch {
	case err != nil && asksForLogin(err):
		http.Redirect(w, r, "/login?next="+url.QueryEscape(p.Path), http.StatusSeeOther)
	case err != nil:
		why, _ := explain(err, actionPatience)
		c.undone(asked, a, why)
		c.refuse(w, r, p, http.StatusConflict, err)
	case out.Template != "":
		c.undone(asked, a, "Changed meanwhile")
		c.instead(w, r, p, out)
	default:
		c.options.Logger.Info("changed by the console", "user", asked.User, "action", a.Path)
		c.say(w, out.Said)
		http.Redirect(w, r, inside(out.To), http.StatusSeeOther)
	}
}

// do runs an action. A fault of its page is an error.
func (c *Console) do(ctx context.Context, r *page.Request, p *page.Page, a *page.Action) (out page.Outcome, err error) {
	defer func() {
		if c.caught(recover(), p.Path, a.Path) != nil {
			out, err = page.Outcome{}, errActionPanic
		}
	}()
	return a.Do(ctx, r)
}

var errActionPanic = status.Error(codes.Internal, "The console failed at this form: the log of the member says why. It may "+
	"have been done all the same: look before you send it again.")

// undone logs an action that was not done, or not as far as is known, at most once a second: whoever may send forms may send
// many.
func (c *Console) undone(r *page.Request, a *page.Action, why string) {
	if suppressed, ok := c.tries.Next(r.Now); ok {
		c.options.Logger.Info("not done by the console", "user", r.User, "action", a.Path, "why", why, "suppressed",
			suppressed)
	}
}

// formPatience is how long a browser may take to send a form.
const formPatience = 30 * time.Second

// takeForm reads a form of at most so many bytes. Its memory is of the client that sends it, until giveBack is called.
func (c *Console) takeForm(w http.ResponseWriter, r *http.Request, most int64) (giveBack func(), err error) {
	nothing := func() {}
	if r.ContentLength < 0 || r.ContentLength > most {
		return nothing, errForm
	}
	giveBack, err = c.options.Lend(r, formCopies*int(r.ContentLength))
	if err != nil {
		return nothing, err
	}
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(formPatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return giveBack, err
	}
	defer conn.SetReadDeadline(time.Time{})
	r.Body = http.MaxBytesReader(w, r.Body, most)
	return giveBack, r.ParseForm()
}

// formCopies is how often a form is in memory: as it came, and as values.
const formCopies = 3

var errForm = errors.New("a form without a length, or a longer one than is taken")

// refuse shows why an action was not done.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, p *page.Page, code int, err error) {
	f := c.frame(c.lookAt(r, p))
	f.Heading, f.Fault = explain(err, actionPatience)
	if mayBeDone(err) {
		f.Fault += " It may have been done all the same: look before you send it again."
	}
	f.Back = backTo(r, p)
	c.writePage(w, r, code, p, f)
}

// instead shows what an action shows in the place of a page.
func (c *Console) instead(w http.ResponseWriter, r *http.Request, p *page.Page, out page.Outcome) {
	var body bytes.Buffer
	if err := c.looks.of(p).ExecuteTemplate(&limited{&body}, out.Template, out.Data); err != nil {
		c.fault(&c.broken, "the console cannot show the outcome of an action", "page", p.Path, "err", err)
		c.refuse(w, r, p, http.StatusConflict, err)
		return
	}
	f := c.frame(c.lookAt(r, p))
	f.Sections = []section{{ID: "outcome", Wide: true, Body: template.HTML(body.String())}} // #nosec: made by html/template
	c.writePage(w, r, http.StatusConflict, p, f)
}

// backTo is the page that a form was on, as the form or its browser says.
func backTo(r *http.Request, p *page.Page) string {
	if back := r.PostForm.Get(backKey); back != "" {
		return inside(back)
	}
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		if to := inside(from.RequestURI()); to != "/" {
			return to
		}
	}
	return p.Path
}
