package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Ensure that amounts which people write are taken, that what is taken is decoded, and that what cannot be, or takes for ever, is refused.
func TestIsQuantity(t *testing.T) {
	for _, text := range []string{"0", "2", "100m", "0.5", ".5", "5.", "1Gi", "1.5Gi", "1e9", "1E9", "1e-3", "1e+3", "500M", "128Mi", "1k", "2Ki",
		"1E", "1Ei", "100n", "3u", "1125899906842624", "999999999999999999.999999999Ei", "999999999999999999e99", "1e-99", "0.000000001n"} {
		if !v1alpha1.IsQuantity(text) {
			t.Errorf("%q is refused", text)
		}
		if q, err := resource.ParseQuantity(text); err != nil || q.Value() < 0 {
			t.Errorf("%q is taken, and is %v, %v", text, q.Value(), err)
		}
	}
	for _, text := range []string{"", "1e1.5", "1e+.5", "1234567890123456789e400000000", "1e100", strings.Repeat("1", 19), "1K", "1 Gi", "1GB",
		"-1", "+1", "1e", "1ee1", "Gi", ".", "1\n"} {
		if v1alpha1.IsQuantity(text) {
			t.Errorf("%q is taken", text)
		}
	}
}

// Ensure that each amount of each CRD has this pattern and a length, also in types of Kubernetes, which bring another one.
func TestQuantityPattern(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/charts/quorate-operator/crds/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	found := 0
	var look func(file string, at any)
	look = func(file string, at any) {
		switch at := at.(type) {
		case map[string]any:
			if at["x-kubernetes-int-or-string"] == true {
				if found++; at["pattern"] != v1alpha1.QuantityPattern || at["maxLength"] != 32.0 {
					t.Errorf("%s: an amount has the pattern %v and the length %v: run make operator-api", file, at["pattern"], at["maxLength"])
				}
			}
			for _, in := range at {
				look(file, in)
			}
		case []any:
			for _, in := range at {
				look(file, in)
			}
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		look(file, crd)
	}
	if found < 4 {
		t.Errorf("only %d amounts were found", found)
	}
}
