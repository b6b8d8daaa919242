"use strict";
// Without this script, and in print, the page shows still pictures of the same figures.
(async () => {
  const figures = JSON.parse(document.getElementById("figure-data").textContent);
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "5px,5px"];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)").matches;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  async function unpack() {
    const packed = atob(document.getElementById("packed-plotly").textContent.trim());
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    script.remove();
  }

  function axis(described, width) {
    const ends = described.log ? described.ends.map(Math.log10) : described.ends;
    return {
      title: { text: described.label, standoff: 8 }, type: described.log ? "log" : "linear", range: ends,
      gridcolor: colour("rule"), linecolor: colour("quiet"), zeroline: false, automargin: true,
      exponentformat: "power", tickangle: 0, nticks: Math.max(3, Math.floor(width / 70)),
      dtick: described.log && ends[1] - ends[0] > 1.2 ? Math.ceil((ends[1] - ends[0]) / (width / 55)) : undefined,
    };
  }

  function trace(series, view) {
    const stroke = colour(`layer-${series.layer}`);
    const named = `<b>${series.label}</b><br>`;
    const common = { name: series.label, mode: "lines" };
    if (series.kind === "line") {
      return {
        ...common, x: [series.x[0], series.x[0]], y: view.y.ends, line: { color: stroke, width: 1.5, dash: "dot" },
        hovertemplate: `${named}${series.note}<extra></extra>`,
      };
    }
    if (series.kind === "band") {
      const height = (view.y.ends[1] * 0.012) * (series.layer + 0.5);
      return {
        ...common, x: series.x, y: [height, height], line: { color: stroke, width: 4 },
        hovertemplate: `${named}${series.note}<extra></extra>`,
      };
    }
    const bars = series.kind === "bars";
    return {
      ...common, x: series.x, y: series.y, fill: bars ? "tozeroy" : "none", fillcolor: `${stroke}29`,
      line: { color: stroke, width: bars ? 0.8 : 2.2, dash: bars ? "solid" : DASHES[series.layer % DASHES.length] },
      hovertemplate: `${named}x = %{x:.5g}<br>y = %{y:.5g}<extra></extra>`,
    };
  }

  function draw(figure, described) {
    const chosen = figure.querySelector("input[type=radio]:checked");
    const view = described.views[chosen ? Number(chosen.value) : 0];
    const layers = [...figure.querySelectorAll("input[name^=layer]")];
    const bars = figure.querySelector("input[name^=bars]");
    const shown = view.series.filter((series) =>
      (!layers.length || layers[series.layer].checked) && (series.kind !== "bars" || !bars || bars.checked));
    const plot = figure.querySelector(".plot");
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink") },
      margin: { l: 56, r: 8, t: 8, b: 44 }, xaxis: axis(view.x, plot.clientWidth - 64), yaxis: axis(view.y, plot.clientHeight - 52), hovermode: "closest",
      showlegend: false,
      hoverlabel: { bgcolor: colour("tint"), bordercolor: colour("rule"), font: { color: colour("ink") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("rule"), activecolor: colour("ink") },
      dragmode: coarse ? false : "zoom",
    };
    const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
    return Plotly.react(plot, shown.map((series) => trace(series, view)), layout, config);
  }

  try {
    await unpack();
  } catch {
    return; // an older browser: the still pictures stay
  }
  for (const described of figures) {
    const figure = document.querySelector(`[data-figure="${described.key}"]`);
    figure.querySelector(".live").hidden = false;
    figure.querySelector(".stills").style.display = "none";
    await draw(figure, described);
    figure.addEventListener("change", () => draw(figure, described));
    dark.addEventListener("change", () => draw(figure, described));
  }
  document.documentElement.dataset.figures = "live";
})();
