package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// Every object of the chart has valid Kubernetes fields, for all values.
func TestHelmChart_rendersValidKubernetesObjects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values string
		kinds  string
	}{
		"as it comes":   {"", "ConfigMap Service Service PodDisruptionBudget StatefulSet"},
		"one node":      {"replicas: 1", "ConfigMap Service Service PodDisruptionBudget StatefulSet"},
		"everything":    {"ingress: {enabled: true, tlsSecret: t, className: nginx, annotations: {a: b}}\nbaseURL: https://c.example.com\nallowedHosts: a\ntrustedProxies: 10.0.0.0/8\nextraArgs: [--zone=a]\nenvFrom: [{secretRef: {name: tokens}}]\nenv: [{name: A, value: b}]\nnodeSelector: {a: b}\ntolerations: [{key: a}]\nimagePullSecrets: [{name: p}]\nbackup: {enabled: true, storage: {size: 1Gi, class: slow}}\nstorage: {size: 1Gi, class: fast}", "PersistentVolumeClaim CronJob ConfigMap Ingress Service Service PodDisruptionBudget StatefulSet"},
		"no replicas":   {"replicas: 0", ""},
		"a wrong name":  {"replica: 3", ""},
		"a wrong URL":   {"baseURL: code.example.com", ""},
		"a wrong shape": {"config: text", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := render("../chart", tt.values)
			if refused := tt.kinds == ""; refused != (err != nil) {
				t.Fatalf("rendered with error %v", err)
			}
			var kinds []string
			for _, text := range objects {
				kind, err := strict(text)
				if err != nil {
					t.Errorf("%v in\n%s", err, text)
				}
				kinds = append(kinds, kind)
			}
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("made %s, want %s", got, tt.kinds)
			}
		})
	}
}

// render returns the objects of a chart, in the order of its files.
func render(dir, values string) (objects []string, err error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	v, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	v, err = chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "x", Namespace: "y"}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, v)
	for _, name := range []string{"backup", "config", "ingress", "service", "nodes"} {
		for text := range strings.SplitSeq(files["shoal/templates/"+name+".yaml"], "\n---\n") {
			if strings.TrimSpace(text) != "" {
				objects = append(objects, text)
			}
		}
	}
	return objects, err
}

// strict parses an object and refuses fields that its kind does not have.
func strict(text string) (kind string, err error) {
	var head struct{ Kind string }
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		return "", err
	}
	into := map[string]any{
		"ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}, "StatefulSet": &appsv1.StatefulSet{},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{}, "CronJob": &batchv1.CronJob{}, "Ingress": &netv1.Ingress{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
	}[head.Kind]
	return head.Kind, yaml.UnmarshalStrict([]byte(text), into)
}

// The compose files follow the schema, and every file and volume that they name exists.
func TestComposeFiles_followTheSchema(t *testing.T) {
	t.Parallel()
	for file, nodes := range map[string]int{"one.yaml": 1, "three.yaml": 3} {
		opt, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose", file)}, cli.WithName("shoal"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := opt.LoadProject(context.Background())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found := 0
		for name, s := range p.Services {
			if strings.HasPrefix(name, "shoal") {
				found++
			}
			for _, v := range s.Volumes {
				if v.Type == "bind" {
					if _, err := os.Stat(v.Source); err != nil {
						t.Errorf("%s: %v", file, err)
					}
				}
			}
		}
		if found != nodes {
			t.Errorf("%s has %d nodes, want %d", file, found, nodes)
		}
	}
}
