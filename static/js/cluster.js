// A page of one cluster: what is live on it.
import { keepCells } from "./cells.js";
import { keepChart } from "./chart.js";
import { keepCopies } from "./copy.js";
import { keepCountdowns } from "./countdown.js";
import { keepGauge } from "./gauge.js";
import { keepLately } from "./lately.js";
import { goLive } from "./live.js";
import { keepButtons } from "./nodes.js";
import { keepForms } from "./send.js";
import { keepWorkloads } from "./workloads.js";

keepCountdowns(document);
keepForms();
keepButtons();
keepCells();
keepCopies();
keepWorkloads();
keepGauge(document.querySelector("[data-gauge]"));
keepLately(document.querySelector(".sparkbox"));
keepChart(document.querySelector("[data-chart]"));
goLive();
