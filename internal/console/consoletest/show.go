package consoletest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/page"
)

// Conn answers calls, by the full name of the method: with a message, or an error. It knows no other methods.
type Conn map[string]any

// Invoke implements grpc.ClientConnInterface.
func (c Conn) Invoke(_ context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	switch answer := c[method].(type) {
	case proto.Message:
		proto.Merge(reply.(proto.Message), answer)
		return nil
	case error:
		return answer
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// NewStream implements grpc.ClientConnInterface.
func (c Conn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

// Show returns what a browser gets at a URL of a console with this page alone. Its clock stands while anything is done: however
// busy the machine is, no section is late.
func Show(t *testing.T, conn grpc.ClientConnInterface, p page.Page, target string) (code int, body string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { code, body = show(t, conn, p, target) })
	return code, body
}

func show(t *testing.T, conn grpc.ClientConnInterface, p page.Page, target string) (code int, body string) {
	t.Helper()
	c, err := console.New(console.Options{Conn: conn, Pages: []page.Page{p}, Member: "m1", Endpoint: "http://127.0.0.1:2379",
		MemoryBytes: 8 << 20, Logger: slog.New(slog.DiscardHandler),
		Lend:  func(*http.Request, int) (func(), error) { return func() {}, nil },
		Enter: func(r *http.Request) (context.Context, func()) { return r.Context(), func() {} }})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil))
	return w.Code, w.Body.String()
}
