// SPDX-License-Identifier: Apache-2.0

// Command dashboard loads a dashboard with Grafana's own types and asks its queries of Prometheus' own engine, which has
// scraped what a daemon said of itself. It prints TAP.
//
// usage: dashboard STACKTAP.JSON METRICS METRICS...
// METRICS: answers of one daemon's /metrics, the oldest first; here a minute lies between two.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	instance    = "host.example:9470"
	between     = time.Minute
	// what a user could have chosen: a datasource, one host of several, and four times the interval
	chosen = "(host.example:9470|other.example:9470)"
	rates  = "4m"
)

var number, failed int

func result(wrong []string, title string) {
	number++
	if len(wrong) == 0 {
		fmt.Printf("ok %d - dashboard: %s\n", number, title)
		return
	}
	failed++
	fmt.Printf("not ok %d - dashboard: %s\n", number, title)
	for _, line := range wrong[:min(len(wrong), 20)] {
		fmt.Printf("# %s\n", line)
	}
}

func complaints(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(err.Error()), "\n")
}

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// scraped is what Prometheus would hold after its scrapes.
type scraped struct {
	storage.LabelQuerier
	names  map[string]labels.Labels
	values map[string][]chunks.Sample
}

func (s *scraped) Querier(int64, int64) (storage.Querier, error) { return s, nil }
func (s *scraped) Close() error                                  { return nil }

func (s *scraped) add(text []byte, at int64) error {
	p, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		p.Labels(&of)
		_, _, value := p.Series()
		of = labels.NewBuilder(of).Set("job", "stacktapd").Set("instance", instance).Labels()
		key := of.String()
		s.names[key] = of
		s.values[key] = append(s.values[key], sample{at, value})
	}
}

type found struct {
	series []storage.Series
	at     int
}

func (f *found) Next() bool                        { f.at++; return f.at < len(f.series) }
func (f *found) At() storage.Series                { return f.series[f.at] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

func (s *scraped) Select(_ context.Context, _ bool, _ *storage.SelectHints, wanted ...*labels.Matcher) storage.SeriesSet {
	all := &found{at: -1}
	for key, of := range s.names {
		matches := true
		for _, one := range wanted {
			matches = matches && one.Matches(of.Get(one.Name))
		}
		if matches {
			all.series = append(all.series, storage.NewListSeries(of, s.values[key]))
		}
	}
	return all
}

var (
	legend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	values = strings.NewReplacer("$instance", chosen, "${instance}", chosen, "$__rate_interval", rates)
)

// asked has what is wrong with the answer to a query.
func asked(engine *promql.Engine, from *scraped, query *grafana.Dataquery, last time.Time) []string {
	text := values.Replace(query.Expr)
	if strings.Contains(text, "$") {
		return []string{query.Expr + ": a variable that there is not"}
	}
	asked, err := engine.NewInstantQuery(context.Background(), from, nil, text, last)
	if err != nil {
		return []string{query.Expr + ": " + err.Error()}
	}
	defer asked.Close()
	answer := asked.Exec(context.Background())
	if answer.Err != nil {
		return []string{query.Expr + ": " + answer.Err.Error()}
	}
	var wrong []string
	for _, warning := range answer.Warnings.AsErrors() {
		wrong = append(wrong, query.Expr+": "+warning.Error())
	}
	vector, err := answer.Vector()
	if err != nil || len(vector) == 0 {
		return append(wrong, fmt.Sprintf("%s: nothing (%v)", query.Expr, err))
	}
	for _, one := range vector {
		if query.LegendFormat == nil || one.Metric.Get("instance") != instance {
			return append(wrong, query.Expr+": not of the host, or without a legend")
		}
		for _, name := range legend.FindAllStringSubmatch(*query.LegendFormat, -1) {
			if one.Metric.Get(name[1]) == "" {
				return append(wrong, fmt.Sprintf("%s: {{%s}} is empty", query.Expr, name[1]))
			}
		}
	}
	return wrong
}

func load(path string) (board dashboard.Dashboard, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return board, err
	}
	// it says what it objects to, and leaves panels out; no objection is an empty list
	var strict dashboard.Dashboard
	var objections cog.BuildErrors
	err = strict.UnmarshalJSONStrict(text)
	if err != nil && (!errors.As(err, &objections) || len(objections) > 0) {
		return board, err
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return board, err
	}
	if err := board.Validate(); err != nil {
		return board, err
	}
	// what has no place in Grafana's types would be gone
	again, err := json.Marshal(board)
	if err != nil {
		return board, err
	}
	var before, after any
	if err := errors.Join(json.Unmarshal(text, &before), json.Unmarshal(again, &after)); err != nil {
		return board, err
	}
	return board, errors.Join(missing("", before, after)...)
}

func missing(path string, before, after any) (lost []error) {
	switch have := before.(type) {
	case map[string]any:
		kept, _ := after.(map[string]any)
		for key, value := range have {
			list, is := value.([]any)
			if is && len(list) == 0 {
				continue // the same as none
			}
			if _, is := kept[key]; !is {
				lost = append(lost, fmt.Errorf("%s.%s is not kept", path, key))
				continue
			}
			lost = append(lost, missing(path+"."+key, value, kept[key])...)
		}
	case []any:
		kept, _ := after.([]any)
		if len(kept) != len(have) {
			return []error{fmt.Errorf("%s: %d of %d are kept", path, len(kept), len(have))}
		}
		for i, value := range have {
			lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, i), value, kept[i])...)
		}
	default:
		if before != after {
			lost = append(lost, fmt.Errorf("%s: %v became %v", path, before, after))
		}
	}
	return lost
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: dashboard STACKTAP.JSON METRICS METRICS...")
		os.Exit(2)
	}
	cog.NewRuntime().RegisterPanelcfgVariant(timeseries.VariantConfig())
	cog.NewRuntime().RegisterDataqueryVariant(grafana.VariantConfig())
	board, err := load(os.Args[1])
	result(complaints(err), "Grafana's types take all of it, and nothing else is in it")

	from := &scraped{names: map[string]labels.Labels{}, values: map[string][]chunks.Sample{}}
	last := time.Unix(1_800_000_000, 0)
	var wrong []string
	for _, path := range os.Args[2:] {
		last = last.Add(between)
		text, err := os.ReadFile(path)
		if err == nil {
			err = from.add(text, last.UnixMilli())
		}
		wrong = append(wrong, complaints(err)...)
	}
	result(wrong, fmt.Sprintf("Prometheus reads what the daemon says: %d series in %d answers", len(from.names), len(os.Args)-2))

	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{}),
	})
	queries := 0
	for _, one := range board.Panels {
		if one.Panel == nil {
			continue
		}
		var wrong []string
		for _, target := range one.Panel.Targets {
			query, is := target.(*grafana.Dataquery)
			if !is {
				wrong = append(wrong, fmt.Sprintf("a query of type %T", target))
				continue
			}
			queries++
			wrong = append(wrong, asked(engine, from, query, last)...)
		}
		result(wrong, *one.Panel.Title+": Prometheus answers each query, with what its legend names")
	}
	if queries < 35 {
		result([]string{fmt.Sprint(queries)}, "there are queries")
	}
	fmt.Printf("1..%d\n", number)
	if failed > 0 {
		os.Exit(1)
	}
}
