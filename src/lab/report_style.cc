#include "lab/report_parts.h"

namespace ridge::report {

// Colours: eight that stay apart for colour-blind readers, a set for each background; grey for what has no
// name.
std::string style() {
  return R"css(
:root{color-scheme:light dark;--page:#f6f5f2;--card:#fff;--ink:#16150f;--soft:#5c5a52;--faint:#8d8b82;--line:#e3e1da;
--grid:#eceae4;--c0:#a8a69d;--c1:#2a78d6;--c2:#1baf7a;--c3:#eda100;--c4:#008300;--c5:#4a3aa7;--c6:#e34948;--c7:#e87ba4;
--c8:#eb6834;--prefill:#2a78d6;--decode:#d9541e;--mixed:#4a3aa7;--good:#0a7a3c;--bad:#b8241f;--open:#8a6100}
@media (prefers-color-scheme:dark){:root{--page:#131311;--card:#1c1c19;--ink:#f4f3ee;--soft:#b9b7ad;--faint:#85837a;
--line:#33332e;--grid:#2a2a26;--c0:#6f6d65;--c1:#3987e5;--c2:#199e70;--c3:#c98500;--c4:#2f9e2f;--c5:#9085e9;--c6:#e66767;
--c7:#d55181;--c8:#d95926;--prefill:#5b9ff0;--decode:#f0794a;--mixed:#a79df2;--good:#4cc27f;--bad:#f0736e;--open:#dba63a}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1320px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;line-height:1.25;margin:0 0 6px;overflow-wrap:anywhere}
h2{font-size:18px;margin:0 0 4px}
h3{font-size:15px;margin:22px 0 4px}
p{margin:4px 0}
.lead{font-size:16px;max-width:75ch}
.note,figcaption{color:var(--soft);font-size:13px;max-width:95ch}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px 20px;margin-top:18px}
figure{margin:10px 0 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px;margin-top:16px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px}
.tile b{display:block;font-size:22px;line-height:1.3;font-weight:600;white-space:nowrap}
.tile span{color:var(--soft);font-size:13px}
svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--soft)}
svg .axis{fill:var(--ink)}
svg .grid{stroke:var(--grid)}
svg .roof{stroke:var(--ink);stroke-width:1.5;fill:none}
svg .inner{stroke:var(--faint);stroke-width:1.25;stroke-dasharray:5 4;fill:none}
svg .gap{stroke-width:1.25;opacity:.5}
svg .id{fill:var(--ink);font-size:11px;font-weight:600;pointer-events:none;paint-order:stroke;stroke:var(--card);
stroke-width:3px;stroke-linejoin:round}
svg .mark{cursor:default;outline:none}
svg .mark path{stroke:var(--card);stroke-width:1.5;fill-opacity:.85}
svg .mark:hover path,svg .mark:focus path{stroke:var(--ink);stroke-width:2.5}
svg .tip{visibility:hidden;pointer-events:none}
svg .tip rect{fill:var(--card);stroke:var(--line)}
svg .tip .first{fill:var(--ink);font-weight:600}
.prefill{fill:var(--prefill)}.decode{fill:var(--decode)}.mixed{fill:var(--mixed)}
line.prefill{stroke:var(--prefill)}line.decode{stroke:var(--decode)}line.mixed{stroke:var(--mixed)}
.narrow{display:none}
.keys{display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:8px 0 0;list-style:none;font-size:13px;color:var(--soft)}
.keys svg{display:inline-block;width:14px;height:14px;vertical-align:-2px;margin-right:5px}
.keys b{color:var(--ink);font-weight:600;font-variant-numeric:tabular-nums}
.swatch{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.bar{display:flex;gap:2px;height:30px;margin-top:6px}
.bar span{min-width:1px;overflow:hidden;border-radius:3px;outline-offset:2px}
.k0{background:var(--c0)}.k1{background:var(--c1)}.k2{background:var(--c2)}.k3{background:var(--c3)}.k4{background:var(--c4)}
.k5{background:var(--c5)}.k6{background:var(--c6)}.k7{background:var(--c7)}.k8{background:var(--c8)}
.k9{background:repeating-linear-gradient(45deg,var(--c0) 0 4px,transparent 4px 7px);border:1px solid var(--c0)}
.what{font-size:13px;color:var(--soft);margin-top:12px}
.scroll{overflow-x:auto;margin-top:10px}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;min-width:100%}
caption{text-align:left;color:var(--soft);padding:0 0 6px}
th,td{padding:4px 6px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft);vertical-align:bottom}
th:first-child,td:first-child{position:sticky;left:0;background:var(--card);padding-left:0}
.l{text-align:left}
td.l:last-child{white-space:normal;min-width:120px}
tbody tr:hover td{background:var(--page)}
small{color:var(--soft);font-size:12px}
.meter{display:inline-block;width:40px;height:8px;border-radius:4px;background:var(--grid);margin-left:7px;overflow:hidden}
.meter i{display:block;height:100%;background:var(--c1);border-radius:4px}
.flag{color:var(--bad);font-weight:600}
details{margin-top:12px}
summary{cursor:pointer;color:var(--soft);font-size:13px}
:focus-visible{outline:2px solid var(--c1)}
.badge{display:inline-block;border:1.5px solid;border-radius:99px;padding:0 10px;font-size:13px;font-weight:600;
white-space:nowrap}
.held{color:var(--good)}.refuted{color:var(--bad)}.undecided{color:var(--open)}
.span{display:grid;grid-template-columns:84px 1fr;gap:2px 12px;align-items:center;margin:12px 0 4px;font-size:13px}
.span .track{position:relative;height:22px;background:var(--page);border-radius:4px}
.span .track i{position:absolute;top:7px;height:8px;border-radius:4px;min-width:2px}
.span .track b{position:absolute;top:4px;width:3px;height:14px;margin-left:-1px;background:var(--ink);border-radius:2px}
.span .track u{position:absolute;top:0;bottom:0;width:0;border-left:1.5px dashed var(--faint)}
.span .ends{position:relative;height:18px;color:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
.span .ends span{position:absolute;transform:translateX(-50%);white-space:nowrap}
.span .ends span.a{transform:none}.span .ends span.z{transform:translateX(-100%)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:8px 0 0;font-size:13px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.halves{display:grid;grid-template-columns:1fr 1fr;gap:8px 32px}
.why{max-width:85ch}
@media (max-width:760px){main{padding:18px 12px 40px}section{padding:14px 12px 16px}.wide{display:none}.narrow{display:block}
.halves{grid-template-columns:1fr}h1{font-size:20px}.tiles{grid-template-columns:1fr 1fr}.tile b{font-size:19px}
.span{grid-template-columns:66px 1fr}}
@media print{section{break-inside:avoid}}
)css";
}

}  // namespace ridge::report
