package v1alpha1_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

var rewrite = flag.Bool("rewrite", false, "append fields that are new to testdata/fields.txt")

// Ensure that an object of the form that the first operators wrote is read, with a consent that accepts nothing: one that is not read
// keeps the operator from all clusters.
func TestQuorateCluster_formerForm(t *testing.T) {
	text, err := os.ReadFile("testdata/former.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := &v1alpha1.QuorateCluster{}
	if err := yaml.Unmarshal(text, c); err != nil {
		t.Fatal(err)
	}
	if r := c.Status.Recovery; r == nil || r.Survivor != "kv-1" || !r.Done || r.Consent != (v1alpha1.Consent{}) {
		t.Errorf("the recovery is %+v", r)
	}
	if c.Spec.Recovery.AcceptLossAfter != 70 || c.Spec.Recovery.Loss != "" || c.Status.VoidedConsent != nil {
		t.Errorf("the consent is %+v, void %v", c.Spec.Recovery, c.Status.VoidedConsent)
	}
}

// Ensure that no field has another type than the field of that name ever had, and that none is required which a former form lacks: of
// testdata/fields.txt nothing is taken out, also if the field is gone.
func TestFields(t *testing.T) {
	const list = "testdata/fields.txt"
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(text)), "\n")
	types := map[string][]string{} // that a field had
	optional := map[string]bool{}
	for _, line := range known {
		words := strings.Fields(line)
		types[words[0]] = append(types[words[0]], words[1])
		optional[words[0]] = optional[words[0]] || len(words) == 2
	}
	files, err := filepath.Glob("../../../deploy/charts/quorate-operator/crds/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		now := map[string]string{}
		fieldsOf(t, file, now)
		for _, path := range slices.Sorted(maps.Keys(now)) {
			kind, required := strings.CutSuffix(now[path], " required")
			had, there := types[path]
			_, in := types[path[:strings.LastIndexAny(path, ".")]]
			line := path + " " + now[path]
			switch {
			case there && slices.ContainsFunc(had, func(former string) bool { return former != kind }):
				t.Errorf("%s is %s and was %v: objects that have it are not read: give it another name", path, kind, had)
			case required && (optional[path] || !there && in):
				t.Errorf("%s is required, and objects of former forms lack it: it must be optional", path)
			case !there && *rewrite:
				known = append(known, line)
			case !there:
				t.Errorf("%s lacks %q: run this test with -rewrite", list, line)
			}
		}
	}
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(list, []byte(strings.Join(known, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fieldsOf notes the type of each field of a CRD, and whether it is required.
func fieldsOf(t *testing.T, file string, into map[string]string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		walk(v.Schema.OpenAPIV3Schema, crd.Spec.Names.Kind+"/"+v.Name, into)
	}
	if len(into) < 5 {
		t.Fatalf("%s has only %d fields", file, len(into))
	}
}

func walk(schema map[string]any, path string, into map[string]string) {
	required, _ := schema["required"].([]any)
	fields, _ := schema["properties"].(map[string]any)
	for name, of := range fields {
		of := of.(map[string]any)
		kind := fmt.Sprint(of["type"])
		if of["x-kubernetes-int-or-string"] == true {
			kind = "integer|string"
		}
		if slices.Contains(required, any(name)) {
			kind += " required"
		}
		into[path+"."+name] = kind
		walk(of, path+"."+name, into)
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if of, ok := schema[part].(map[string]any); ok {
			into[path+".*"] = fmt.Sprint(of["type"])
			if of["x-kubernetes-int-or-string"] == true {
				into[path+".*"] = "integer|string"
			}
			walk(of, path+".*", into)
		}
	}
}
