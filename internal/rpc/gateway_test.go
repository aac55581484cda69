package rpc_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/rpc"
)

// post sends JSON and returns status and body.
func (s *server) post(t testing.TB, path, body string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(waitContext(t), http.MethodPost, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

// headerNow is the header of an answer in JSON, at a revision.
func headerNow(revision string) string {
	return `"header":{"cluster_id":"193","member_id":"161","revision":"` + revision + `","raft_term":"7"}`
}

// Ensure that answers are those of etcd 3.7.1, as observed there, in the order of these requests. @ stands for the header.
func TestGateway_answers(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	const pair = `{"key":"Zm9v","create_revision":"2","mod_revision":"2","version":"1","value":"YmFy"}`
	const found = `{@,"kvs":[` + pair + `],"count":"1"}`
	for _, row := range []struct {
		path, body string
		code       int
		revision   string
		want       string
	}{
		{"kv/put", `{"key":"Zm9v","value":"YmFy"}`, 200, "2", `{@}`},
		{"kv/range", `{"key":"Zm9v"}`, 200, "2", found},
		{"kv/range", `{}`, 400, "", `{"code":3,"message":"etcdserver: key is not provided"}`},
		{"kv/range", ``, 400, "", `{"code":3,"message":"etcdserver: key is not provided"}`},
		{"kv/range", `{"key":"Zm9v"} garbage`, 200, "2", found},
		{"kv/range", `{"key":"Zm9v"`, 400, "", `{"code":3,"message":"unexpected EOF"}`},
		{"kv/range", `{"key":"Zm9v","unknown":1}`, 200, "2", found},
		{"kv/range", `{"key":"Zm9v","revision":99999}`, 400, "",
			`{"code":11,"message":"etcdserver: mvcc: required revision is a future revision"}`},
		{"kv/range", `{"key":"Zm9v","sort_order":"DESCEND","limit":"3"}`, 200, "2", found},
		{"kv/range", `{"key":"Zm9v","sortOrder":"DESCEND","limit":3}`, 200, "2", found},
		{"kv/range", `{"key":"Zm9v","sort_order":"FOO"}`, 200, "2", found},
		{"kv/rangestream", `{"key":"Zm9v"}`, 404, "", `{"code":5,"message":"Not Found"}`},
		{"kv/txn", `{"compare":[{"result":"EQUAL","target":"VALUE","key":"Zm9v","value":"YmFy"}],` +
			`"success":[{"request_range":{"key":"Zm9v"}}]}`, 200, "2", `{@,"succeeded":true,"responses":[` +
			`{"response_range":{"header":{"revision":"2"},"kvs":[` + pair + `],"count":"1"}}]}`},
		{"kv/txn", `{"success":[{}]}`, 400, "", `{"code":3,"message":"etcdserver: key not found"}`},
		{"lease/grant", `{"TTL":"100","ID":"12345"}`, 200, "2", `{@,"ID":"12345","TTL":"100"}`},
		{"lease/grant", `{"TTL":"100","ID":"12345"}`, 400, "", `{"code":9,"message":"etcdserver: lease already exists"}`},
		{"lease/keepalive", `{"ID":"12345"}`, 200, "2", `{"result":{@,"ID":"12345","TTL":"100"}}` + "\n"},
		{"lease/keepalive", `{"ID":"99"}`, 200, "2", `{"result":{@,"ID":"99"}}` + "\n"},
		{"kv/lease/timetolive", `{"ID":"99"}`, 200, "2", `{@,"ID":"99","TTL":"-1"}`},
		{"lease/leases", `{}`, 200, "2", `{@,"leases":[{"ID":"12345"}]}`},
		{"lease/revoke", `{"ID":"99"}`, 404, "", `{"code":5,"message":"etcdserver: requested lease not found"}`},
		{"auth/enable", `{}`, 400, "", `{"code":9,"message":"etcdserver: root user does not exist"}`},
		{"lock/lock", `{"name":"bG9jaw==","lease":"999"}`, 500, "",
			`{"code":2,"message":"etcdserver: requested lease not found"}`},
		{"lock/lock", `{"name":"bG9jaw==","lease":"12345"}`, 200, "3", `{@,"key":"bG9jay8zMDM5"}`},
		{"lock/unlock", `{"key":"bG9jay8zMDM5"}`, 200, "4", `{@}`},
		{"election/leader", `{"name":"aGVsbG8="}`, 500, "", `{"code":2,"message":"election: no leader"}`},
		{"election/campaign", `{"name":"aGVsbG8=","value":"djE=","lease":"12345"}`, 200, "5",
			`{@,"leader":{"name":"aGVsbG8=","key":"aGVsbG8vMzAzOQ==","rev":"5","lease":"12345"}}`},
		{"election/proclaim", `{}`, 500, "", `{"code":2,"message":"\"leader\" field must be provided"}`},
		{"watch", `{"create_request":{"key":"Zm9v"`, 400, "", // etcd does not answer
			`{"error":{"code":3,"message":"unexpected EOF"}}` + "\n"},
		{"nope", `{}`, 404, "", `{"code":5,"message":"Not Found"}`},
	} {
		code, got := s.post(t, "/v3/"+row.path, row.body)
		if want := strings.ReplaceAll(row.want, "@", headerNow(row.revision)); code != row.code || got != want {
			t.Errorf("%s %s: got %d %s, want %d %s", row.path, row.body, code, got, row.code, want)
		}
	}
	if code, got := s.post(t, "/v3beta/kv/range", `{"key":"Zm9v"}`); code != 200 || !strings.Contains(got, pair) {
		t.Errorf("the former path: got %d %s", code, got)
	}
	if code, got := s.get(t, "/v3/kv/range"); code != 501 || got != `{"code":12,"message":"Method Not Allowed"}` {
		t.Errorf("GET: got %d %s", code, got)
	}
	if code, got := s.post(t, "/v3/kv/range", `{"key":"Zm9v"}`, "Grpc-Timeout", "1n"); code != 504 ||
		got != `{"code":4,"message":"context deadline exceeded"}` {
		t.Errorf("a timeout: got %d %s", code, got)
	}
}

// Ensure that the requests of a watch may come one after the other in one body, and that its answers come at once.
func TestGateway_watch(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	answer, err := http.Post("http://"+s.addr+"/v3/watch", "application/json",
		strings.NewReader(`{"create_request":{"key":"YQ=="}}{"create_request":{"key":"Yg=="}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	line := func() string { lines.Scan(); return lines.Text() }
	if first, second := line(), line(); !strings.HasSuffix(first, `"created":true}}`) ||
		!strings.HasSuffix(second, `"watch_id":"1","created":true}}`) {
		t.Errorf("got %s, %s", first, second)
	}
	s.post(t, "/v3/kv/put", `{"key":"Yg==","value":"MQ=="}`)
	if got := line(); !strings.Contains(got, `"watch_id":"1","events":[{"kv":{"key":"Yg==","create_revision":"2"`) {
		t.Errorf("got %s", got)
	}
}

// Ensure that every path of the OpenAPI document is served, and no other.
func TestGateway_openAPI(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	_, body := s.get(t, "/v3/openapi.json")
	var document struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Paths) != 51 { // 49 calls and three second paths, but for RangeStream
		t.Errorf("%d paths", len(document.Paths))
	}
	for path := range document.Paths {
		if code, _ := s.post(t, path, `[`); code != 400 { // served, and refused
			t.Errorf("%s: got %d", path, code)
		}
	}
	for _, reference := range strings.Split(body, `"$ref": "#/components/schemas/`)[1:] {
		if name, _, _ := strings.Cut(reference, `"`); document.Components.Schemas[name] == nil {
			t.Errorf("the schema %s is missing", name)
		}
	}
}

// Ensure that only tokens log callers of the gateway in: no certificate, and no header.
func TestGateway_users(t *testing.T) {
	s := serveMember(t, func(o *rpcOptions) { o.Certificates = true })
	enable(t, s)
	code, answer := s.post(t, "/v3/auth/authenticate", `{"name":"alice","password":"alicepw"}`)
	var login struct{ Token string }
	if err := json.Unmarshal([]byte(answer), &login); err != nil || code != 200 || login.Token == "" {
		t.Fatalf("got %d %s", code, answer)
	}
	const own, foreign = `{"key":"YTE="}`, `{"key":"czE="}`
	for _, row := range []struct {
		name, body string
		headers    []string
		code       int
	}{
		{"a token", own, []string{"Authorization", login.Token}, 200},
		{"a token as bearer", own, []string{"Authorization", "Bearer " + login.Token}, 200},
		{"a token as metadata", own, []string{"Grpc-Metadata-Token", login.Token}, 200},
		{"what the user may not read", foreign, []string{"Authorization", login.Token}, 403},
		{"no token", own, nil, 400},
		{"a bad token", own, []string{"Authorization", "bad.1"}, 401},
		{"what a gateway says of itself", foreign, []string{"Grpc-Metadata-Grpcgateway-Accept", "x",
			"Grpc-Metadata-User", "root", "X-Forwarded-For", "127.0.0.1"}, 400},
	} {
		if code, got := s.post(t, "/v3/kv/range", row.body, row.headers...); code != row.code {
			t.Errorf("%s: got %d %s, want %d", row.name, code, got, row.code)
		}
	}
	shown := func(name string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "/v3/kv/range", strings.NewReader(foreign))
		leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
		w := httptest.NewRecorder()
		s.services.Gateway().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, got := shown("root"); code != 400 || !strings.HasPrefix(got, "CommonName of client sending a request") {
		t.Errorf("root's certificate: got %d %s", code, got)
	}
	if code, got := shown(""); code != 400 || got != `{"code":3,"message":"etcdserver: user name is empty"}` {
		t.Errorf("a certificate without a name: got %d %s", code, got)
	}
}

// Ensure that a browser that was lured to another name of this host is refused with etcd's status.
func TestGateway_hosts(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpc.Options) { o.AllowedHosts = []string{"127.0.0.1"} })
	if code, _ := s.post(t, "/v3/kv/range", `{"key":"YQ=="}`); code != 200 {
		t.Errorf("the allowed name: got %d", code)
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+s.addr+"/v3/kv/range", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example:2379"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusMisdirectedRequest || !strings.Contains(string(text), `--host-whitelist="evil.example"`) {
		t.Errorf("another name: got %d %s", answer.StatusCode, text)
	}
}
