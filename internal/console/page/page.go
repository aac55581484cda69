package page

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/base/typed"
)

// Page is one page.
type Page struct {
	Path      string // such as /members; one that ends with a slash has all paths below it, too: Request.Below
	Name      string // in the navigation, and the title
	About     string // one sentence on what it shows
	Hidden    bool   // not in the navigation: it is reached from another page
	Templates fs.FS  // *.html at its root: the templates of its sections
	Sections  []Section
	Actions   []Action
	// Title is the title of one look; nil, or empty: Name.
	Title func(r *Request) string
	// Pictures are files of the build, at the root of the tree, that are served below Path as pictures/NAME; nil: none.
	Pictures fs.FS
	Files    []File
}

// Section is a part of a page that is loaded by itself.
type Section struct {
	ID    string // of the element; unique on the page
	Title string // its heading; empty: its template has one
	Live  bool   // it is sent again while somebody looks at it
	Wide  bool   // it takes the whole width
	// Template names the template that shows what Load returns.
	Template string
	// Load asks the member, within the deadline of the context. Its result belongs to the caller. An error of gRPC is
	// explained to the reader; ErrHidden leaves the section out.
	Load func(ctx context.Context, r *Request) (any, error)
	// Command is the command line that shows the same; nil: there is none.
	Command func(r *Request) string
}

// ErrHidden is the error of a section that has nothing to show on this page.
var ErrHidden = errors.New("the section is hidden")

// Action changes something: a form is posted to its path.
type Action struct {
	Path string // below that of its page, such as /members/replace
	// Do makes the change. An error of gRPC is explained to the reader, and nothing else happens; a FormError is shown as it
	// is.
	Do func(ctx context.Context, r *Request) (Outcome, error)
}

// Outcome is what an action leads to.
type Outcome struct {
	To   string // the page that is shown then, with its query
	Said string // one sentence above it
	// Template shows Data in the place of a page: why nothing was changed, and what can be done. Empty: the browser goes on.
	Template string
	Data     any
}

// File is a file that a browser saves.
type File struct {
	Path string // below that of its page
	// Load asks the member, as that of a section.
	Load func(ctx context.Context, r *Request) (Contents, error)
}

// Contents are those of a file. A browser that shows them takes them for plain text.
type Contents struct {
	Name string // letters, digits, dots and dashes, and @
	Body []byte
}

// FormError is an error in what a form says, in words for the reader.
type FormError string

// Error implements error.
func (e FormError) Error() string { return string(e) }

// Request is a look at a page, or a form.
type Request struct {
	// Conn calls the API of the member as the user. It passes only calls that read, except in an action.
	Conn grpc.ClientConnInterface
	User string // empty: no user has logged in
	// Certified says that the user is the one of a certificate: commands name it by a file that is not known here.
	Certified bool
	// Admin says whether the console has actions: a section shows their forms only then.
	Admin bool
	// Below is what the path has behind that of the page.
	Below string
	Query url.Values // of the page
	Form  url.Values // of an action
	Now   time.Time
	// Endpoint is where clients reach this member, for commands; empty: the default of the command line.
	Endpoint string
	// Member is the name of the member that shows the console.
	Member string
}

// Command is a command line of quorate that asks this member, as the user who looks.
func (r *Request) Command(words ...string) string {
	return typed.Line(slices.Concat([]string{"quorate"}, words, r.Connection())...)
}

// Connection are the flags by which a command asks this member, as the user who looks, each with its value: the command asks
// for the password.
func (r *Request) Connection() (flags []string) {
	if r.Endpoint != "" {
		flags = append(flags, "--endpoints", r.Endpoint)
	}
	if r.User != "" && !r.Certified {
		flags = append(flags, "--user", r.User)
	}
	return flags
}

// Asking is a command line that a member has made, as one that asks this member. It may name another user.
func (r *Request) Asking(line string) string {
	if line == "" {
		return ""
	}
	words, flags := strings.Fields(line), r.Connection()
	for i := 0; i < len(flags); i += 2 {
		if !slices.Contains(words, flags[i]) {
			line += " " + typed.Line(flags[i], flags[i+1])
		}
	}
	return line
}

// Is returns a command line that is the same for every request but for the endpoint.
func Is(words ...string) func(*Request) string {
	return func(r *Request) string { return r.Command(words...) }
}
