package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Ensure that the API server takes the CRDs, fills in defaults, and refuses wrong specs with a sentence that says what to do.
func TestCRDs(t *testing.T) {
	_, api, _ := control(t)
	for _, row := range []struct{ name, spec, want string }{
		{"least", `{}`, ""},
		{"all", `{members: 5, zones: [a, b, c], version: "1.1.0", storage: {size: 20Gi, className: fast}, tls: {mode: Secret, secretName: s},
auth: {rootPasswordSecret: r, users: [{name: app, passwordSecret: p, prefixes: [{prefix: app/, access: Read}]}]},
backup: {place: "s3://b/p", keep: "48h,daily:30"}, args: ["--memory=1GiB"], secrets: [keys], claims: [nfs], podAntiAffinity: Required,
podLabels: {team: a}, podAnnotations: {mesh: "off"}, podSecurityContext: {}, serviceAccountName: kv, imagePullPolicy: Always}`, ""},
		{"a directory of a claim", `{claims: [nfs], backup: {place: "file:///mnt/claims/nfs/kv"}}`, ""},
		{"no members", `{members: -1}`, "greater than or equal to 1"},
		{"a flag of the operator's", `{args: ["--data-dir=/x"]}`, "names a flag that the operator sets itself"},
		{"no flag", `{args: ["rm -rf"]}`, "should match"},
		{"a Secret without its name", `{tls: {mode: Secret}}`, "secretName goes with mode Secret"},
		{"a name without its mode", `{tls: {mode: BuiltIn, secretName: x}}`, "secretName goes with mode Secret"},
		{"a mode that is none", `{tls: {mode: Maybe}}`, "Unsupported value"},
		{"an issuer without its mode", `{tls: {mode: None, issuerRef: {name: x}}}`, "issuerRef goes with mode CertManager"},
		{"a short life", `{tls: {mode: BuiltIn, validity: 1s}}`, "at least 10m"},
		{"a directory that no pod has", `{backup: {place: "file:///backups/kv"}}`, "is in one of spec.claims"},
		{"a past state in a directory that no pod has", `{restore: {place: "file:///backups/kv"}}`, "is in one of spec.claims"},
		{"labels of the operator", `{podLabels: {quorate.io/purpose: x}}`, "are the operator's"},
		{"annotations of the operator", `{podAnnotations: {quorate.io/template: x}}`, "are the operator's"},
		{"root as a user", `{auth: {rootPasswordSecret: r, users: [{name: root}]}}`, "root is made from rootPasswordSecret"},
		{"a place that is none", `{backup: {place: "ftp://x"}}`, "should match"},
		{"amounts as people write them", `{storage: {size: 1.5Gi}, resources: {limits: {memory: 500M, cpu: 2}, requests: {cpu: 100m, memory: 1e9}},
env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]}`, ""},
		{"a loss without comparing", `{recovery: {acceptLossAfter: 5, loss: 0a1b, uncomparedLoss: 0a1b}}`, ""},
		{"another loss without comparing", `{recovery: {acceptLossAfter: 5, loss: 0a1b, uncomparedLoss: 0a1c}}`, "take that of a former loss out"},
		{"no loss, without comparing", `{recovery: {acceptLossAfter: 5, uncomparedLoss: 0a1b}}`, "take that of a former loss out"},
		{"hosts", `{exposure: {hosts: [kv.example.com, "*.kv.example.com", localhost]}}`, ""},
		{"a host with a port", `{exposure: {hosts: ["kv.example.com:2379"]}}`, "should match"},
		{"a host of two lines", `{exposure: {hosts: ["kv.example.com\nx"]}}`, "should match"},
		{"no time to wait", `{replaceAfter: 1s}`, "at least 5s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: "c", Namespace: "default"}}
			must(t, yaml.UnmarshalStrict([]byte(row.spec), &c.Spec))
			refused(t, api.Create(t.Context(), c), row.want)
		})
	}
	for _, amount := range []string{"1e1.5", "1e+.5", "1234567890123456789e400000000"} {
		for _, spec := range []string{`{storage: {size: %q}}`, `{resources: {limits: {memory: %q}}}`, `{resources: {requests: {cpu: %q}}}`,
			`{env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: %q}}}]}`} {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("QuorateCluster"))
			u.SetName("amount")
			u.SetNamespace("default")
			var fields map[string]any
			must(t, yaml.Unmarshal(fmt.Appendf(nil, spec, amount), &fields))
			u.Object["spec"] = fields
			refused(t, api.Create(t.Context(), u), "should match")
		}
	}
	long := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("x", 41), Namespace: "default"}}
	refused(t, api.Create(t.Context(), long), "at most 40 characters")
	c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "default"}}
	must(t, api.Create(t.Context(), c))
	if c.Spec.Members != 3 || c.Spec.TLS.Mode != "BuiltIn" || c.Spec.Storage.Size.String() != "8Gi" || c.Spec.ReplaceAfter.Seconds() != 30 ||
		c.Spec.TLS.Validity.Hours() != 2160 || c.Spec.Exposure.Type != "ClusterIP" || c.Spec.Image != "quorate" {
		t.Errorf("defaults: %+v", c.Spec)
	}
	for _, row := range []struct {
		name   string
		change func(s *v1alpha1.QuorateClusterSpec)
		want   string
	}{
		{"smaller claims", func(s *v1alpha1.QuorateClusterSpec) { s.Storage.Size = resource.MustParse("1Gi") }, "claims do not shrink"},
		{"larger claims", func(s *v1alpha1.QuorateClusterSpec) { s.Storage.Size = resource.MustParse("10Gi") }, ""},
		{"another class", func(s *v1alpha1.QuorateClusterSpec) { s.Storage.ClassName = "x" }, "the class of claims does not change"},
		{"another mode", func(s *v1alpha1.QuorateClusterSpec) { s.TLS.Mode = "None" }, "tls.mode does not change"},
		{"users", func(s *v1alpha1.QuorateClusterSpec) { s.Auth = &v1alpha1.Auth{RootPasswordSecret: "r"} }, ""},
		{"no users any more", func(s *v1alpha1.QuorateClusterSpec) { s.Auth = nil }, "auth stays"},
		{"a restore of one that lives", func(s *v1alpha1.QuorateClusterSpec) {
			s.Restore = &v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}
		}, "restore is read when the cluster is founded"},
	} {
		t.Run(row.name, func(t *testing.T) {
			changed := c.DeepCopy()
			row.change(&changed.Spec)
			err := api.Update(t.Context(), changed)
			refused(t, err, row.want)
			if err == nil {
				must(t, api.Get(t.Context(), client.ObjectKeyFromObject(c), c))
			}
		})
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s…", err, want)
	}
}
