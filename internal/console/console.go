package console

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/logpace"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/labweb"
	"github.com/quorate/quorate/internal/limits/admission"
)

// Options of New.
type Options struct {
	// Conn calls all services of the member.
	Conn grpc.ClientConnInterface
	// Enter returns the context for calls that a request makes: it has the address and the certificate of the client. done
	// gives back what the calls hold.
	Enter func(r *http.Request) (ctx context.Context, done func())
	// Lend lends memory for an answer that is sent to the client of a request.
	Lend func(r *http.Request, bytes int) (giveBack func(), err error)
	// Admin serves the actions of the pages, too.
	Admin bool
	// Encrypted says that all listeners of the console are encrypted: its cookies go over nothing else then.
	Encrypted bool
	// Hosts are the names by which requests that are not encrypted may call the console, beside localhost and IP addresses. A
	// page elsewhere may have its own name lead to this address (DNS rebinding).
	Hosts    []string
	Member   string // its name
	Endpoint string // where clients reach the member; empty: nowhere
	Version  string // of the program
	Pages    []page.Page
	// Laboratory returns the files of the laboratory; nil: this build has none.
	Laboratory func() (fs.FS, error)
	// MemoryBytes bounds what the console keeps of sections that were shown last.
	MemoryBytes int64
	Logger      *slog.Logger
}

// Console serves the pages.
type Console struct {
	options Options
	looks   *templates
	known   *memory
	pace    pace
	panics  logpace.Pace         // of lines about faults of pages
	broken  logpace.Pace         // the same, about what cannot be shown, such as what is too long
	tries   logpace.Pace         // the same, about actions that were not done
	turns   *admission.HostTurns // of sections and files that are being loaded: most of that time they wait
	key     [32]byte             // of seal
	renders chan struct{}        // of what needs a processor
	reads   grpc.ClientConnInterface
	hasLab  bool // this build has the laboratory: the navigation leads there
	mux     *http.ServeMux
}

// Bounds of sections and files that are loaded. Others wait for their turn, within their deadline: a section whose member waits
// for others may take all of it.
const (
	loadsAtOnce     = 32
	hostLoadsAtOnce = 16
	rendersAtOnce   = 4
	maxLoads        = 512 // that run or wait
	maxHostLoads    = 256
)

// New makes a console. It returns an error if templates of pages do not parse or two pages have one path: a fault of the build.
func New(options Options) (*Console, error) {
	looks, err := newTemplates(options.Pages)
	if err != nil {
		return nil, err
	}
	c := &Console{options: options, looks: looks, known: newMemory(options.MemoryBytes), mux: http.NewServeMux(),
		turns:   admission.NewHostTurns(loadsAtOnce, maxLoads, maxHostLoads).Share(hostLoadsAtOnce),
		renders: make(chan struct{}, rendersAtOnce),
		reads:   readOnly{options.Conn}}
	_, _ = rand.Read(c.key[:]) // it never fails
	c.mux.HandleFunc("GET /assets/{name}", serveAsset)
	c.mux.HandleFunc("GET /login", c.showLogin)
	c.mux.HandleFunc("POST /login", c.login)
	c.mux.HandleFunc("POST /logout", c.logout)
	for i := range options.Pages {
		p := &options.Pages[i]
		c.mux.HandleFunc("GET "+exact(p.Path), func(w http.ResponseWriter, r *http.Request) { c.show(w, r, p) })
		if p.Pictures != nil {
			c.mux.HandleFunc("GET "+p.Path+"pictures/{name}", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Security-Policy", picturePolicy)
				serveFile(w, r, p.Pictures, r.PathValue("name"))
			})
		}
		c.addFiles(p)
		if options.Admin {
			c.addActions(p)
		}
	}
	if options.Laboratory != nil {
		_, err := options.Laboratory()
		c.hasLab = err == nil
		c.mux.Handle("GET /lab/", http.StripPrefix("/lab/", http.HandlerFunc(c.laboratory)))
	}
	c.mux.HandleFunc("/", c.missing)
	return c, nil
}

// turn waits for a turn to load something for the client of a request. leave ends it.
func (c *Console) turn(ctx context.Context, r *http.Request) (leave func(), err error) {
	leave, err = c.turns.Enter(ctx, hostOf(r), 1)
	if errors.Is(err, admission.ErrQueueFull) {
		err = errManyLoads
	}
	return leave, err
}

var errManyLoads = status.Errorf(codes.ResourceExhausted,
	"Too much is being loaded for your address (%d sections at most), or for all: load the page again.", maxHostLoads)

// hostOf is the address of the client of a request, whose share a load takes.
func hostOf(r *http.Request) string { return admission.Host(admission.AddressOf(r)) }

// exact is a pattern for this path; one that ends with a slash has those below it, too, but for the first page.
func exact(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return path
}

// Handler serves the console.
func (c *Console) Handler() http.Handler {
	return c.guarded(http.NewCrossOriginProtection().Handler(c.mux))
}

// laboratory serves the static files of the laboratory, to everybody: they tell nothing of this cluster.
func (c *Console) laboratory(w http.ResponseWriter, r *http.Request) {
	tree, err := c.options.Laboratory()
	if err != nil {
		f := c.frame(&look{request: r, session: c.sessionOf(r)})
		f.Title, f.Heading, f.Fault = "Laboratory", "This build has no laboratory", page.Text(err.Error())
		c.writePage(w, r, http.StatusNotFound, nil, f)
		return
	}
	w.Header().Set("Content-Security-Policy", labweb.Policy)
	w.Header().Set("Cache-Control", "no-cache")
	http.FileServerFS(tree).ServeHTTP(w, r)
}
