// Package charts tests the charts of deploy/charts with Helm as a library: lint, renders that are compared with golden
// files, and installations, upgrades and rollbacks against a cluster that only remembers manifests. It is a module of its
// own, for Helm; helmtest has that which the tests of both charts share.
//
// Other tests run the pods and jobs of a release as processes, with the commands and the environment that the chart gives
// them: they want root. `make charts` runs all.
package charts
