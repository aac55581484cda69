package controller

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// scrapeFor is how long a scrape may wait for the list of the clusters.
const scrapeFor = 5 * time.Second

var (
	ofCluster = []string{"namespace", "name"}
	condition = prometheus.NewDesc("quorate_operator_cluster_condition",
		"Conditions of clusters: 1 is True, 0 False or Unknown. Available and Healthy are good at 1, findings of the doctor "+
			"bad.",
		append([]string{"condition"}, ofCluster...), nil)
	wanted = prometheus.NewDesc("quorate_operator_cluster_members_wanted", "Voters that the spec of a cluster wants.",
		ofCluster, nil)
	healthy = prometheus.NewDesc("quorate_operator_cluster_members_healthy",
		"Voters that work, as the leader of a cluster says.", ofCluster, nil)
)

// Gauges tells Prometheus of the clusters, as their status has them: each replica tells the same, whichever acts. They are read
// without their types: one that cannot be decoded is left out.
type Gauges struct{ Clusters client.Reader }

// gauged is the part of a cluster that gauges tell.
type gauged struct {
	Spec struct {
		Members int64 `json:"members"`
	} `json:"spec"`
	Status struct {
		HealthyMembers int64 `json:"healthyMembers"`
		Conditions     []struct {
			Type   string                 `json:"type"`
			Status metav1.ConditionStatus `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// Describe names the gauges.
func (g *Gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{condition, wanted, healthy} {
		to <- d
	}
}

// Collect reads the clusters. One whose status nobody has written has its number of members alone.
func (g *Gauges) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeFor)
	defer cancel()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("QuorateClusterList"))
	if err := g.Clusters.List(ctx, all); err != nil {
		to <- prometheus.NewInvalidMetric(condition, err)
		return
	}
	for i := range all.Items {
		var c gauged
		name := []string{all.Items[i].GetNamespace(), all.Items[i].GetName()}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, &c); err != nil {
			continue
		}
		tell := func(d *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append(labels, name...)...)
		}
		tell(wanted, float64(c.Spec.Members))
		if len(c.Status.Conditions) == 0 {
			continue
		}
		tell(healthy, float64(c.Status.HealthyMembers))
		for _, at := range c.Status.Conditions {
			value := 0.0
			if at.Status == metav1.ConditionTrue {
				value = 1
			}
			tell(condition, value, at.Type)
		}
	}
}
